"""The files in ``deploy`` start a router."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from router_ext.config.loader import parse
from router_ext.config.url import is_loopback

ROOT = Path(__file__).parents[2]


def kubernetes() -> list[dict[str, Any]]:
    """Every object of the manifest."""
    return list(yaml.safe_load_all((ROOT / "deploy/kubernetes/router-ext.yaml").read_text()))


def configurations() -> dict[str, str]:
    """The configuration files by where they are used."""
    found = next(item for item in kubernetes() if item["kind"] == "ConfigMap")["data"]["router.yaml"]
    return {"kubernetes": found, "compose": (ROOT / "deploy/compose/router.yaml").read_text()}


def variables(place: str) -> set[str]:
    """Names of the variables that the router gets."""
    if place == "compose":
        services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
        return set(services["router"]["environment"])
    pod = next(item for item in kubernetes() if item["kind"] == "Deployment")["spec"]["template"]["spec"]
    router = next(item for item in pod["containers"] if item["name"] == "router-ext")
    return {item["name"] for item in router["env"]}


@pytest.mark.parametrize("place", ["compose", "kubernetes"])
def test_a_deployment_whose_admin_api_others_reach_has_a_token(place: str) -> None:
    """Else the router refuses to start. The token itself stands in no file."""
    loaded = parse(configurations()[place], "router.yaml", Path("/etc/router_ext"), os.environ)
    assert not is_loopback(loaded.config.server.admin_host)
    assert "ROUTER_API_TOKEN" in variables(place)


def test_probes_use_paths_that_need_no_token() -> None:
    """A kubelet has none."""
    pod = next(item for item in kubernetes() if item["kind"] == "Deployment")["spec"]["template"]["spec"]
    router = next(item for item in pod["containers"] if item["name"] == "router-ext")
    paths = {router[probe]["httpGet"]["path"] for probe in ("readinessProbe", "livenessProbe")}
    assert paths == {"/ready", "/health"}
