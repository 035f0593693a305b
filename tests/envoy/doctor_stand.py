"""A router that stays, and one Envoy after the other, each on the rendered files with one thing changed."""

import json
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import environ
from pathlib import Path
from typing import Any

import pytest
import yaml

from router_ext.cli.main import main
from router_ext.control import begin
from router_ext.envoygen import render_bootstrap, render_clusters
from tests.envoy.rig import EnvoyProcess, wait_until
from tests.envoy.stack import Stack

Document = dict[str, Any]
Change = Callable[[Document, Document], None]
"""Changes the bootstrap and the cluster file in place."""

_CHECKS = "cluster.router-ext.health_check."


@dataclass(frozen=True)
class Report:
    """What ``router-ext doctor --json`` said."""

    code: int
    checks: dict[str, Document]

    @property
    def wrong(self) -> dict[str, str]:
        """The status of each check that is neither fine nor skipped."""
        statuses = {name: check["status"] for name, check in self.checks.items()}
        return {name: status for name, status in statuses.items() if status not in ("ok", "skipped")}

    def mending(self, check: str) -> str:
        """The mending lines of a check."""
        return "\n".join(finding["mend"] for finding in self.checks[check]["findings"])


def nothing(_bootstrap: Document, _clusters: Document) -> None:
    """Leaves the rendered files as they are."""


def manager(bootstrap: Document, listener: int = 0) -> Document:
    """The HTTP connection manager of the ingress listener, or of the egress listener (1)."""
    chain = bootstrap["static_resources"]["listeners"][listener]["filter_chains"][0]
    found: Document = chain["filters"][0]["typed_config"]
    return found


def ext_proc(bootstrap: Document) -> Document:
    """The settings of the ext_proc filter."""
    found: Document = manager(bootstrap)["http_filters"][1]["typed_config"]
    return found


def routes(bootstrap: Document) -> list[Document]:
    """The routes of the ingress listener."""
    found: list[Document] = manager(bootstrap)["route_config"]["virtual_hosts"][0]["routes"]
    return found


@contextmanager
def envoy(stack: Stack, change: Change = nothing) -> Iterator[EnvoyProcess]:
    """A real Envoy on the rendered and changed files; it has the answer of a first health check."""
    process = EnvoyProcess(_write(stack, change), stack.envoy_admin, stack.folder)
    with process:
        wait_until(lambda: any(process.stat(_CHECKS + word) for word in ("success", "failure")), "a health check")
        yield process


def _write(stack: Stack, change: Change) -> Path:
    """The files stand beside those of the router, which it would write anew."""
    config = begin(stack.config, environ, None, 0.0).loaded.config
    folder = stack.folder / "changed"
    folder.mkdir(exist_ok=True)
    bootstrap, clusters = render_bootstrap(config, folder), render_clusters(config)
    change(bootstrap, clusters)
    for name, content in (("bootstrap.yaml", bootstrap), ("clusters.yaml", clusters)):
        (folder / name).write_text(yaml.safe_dump(content, sort_keys=False))
    return folder / "bootstrap.yaml"


def await_backends(stack: Stack) -> None:
    """Waits until the router has reached every backend through this Envoy."""
    wait_until(lambda: _healths(stack) == {"healthy"}, "every backend to be healthy", 20.0)


def _healths(stack: Stack) -> set[str]:
    with urllib.request.urlopen(stack.admin_url + "/health", timeout=5) as answer:
        return {backend["health"] for backend in json.load(answer)["backends"]}


def examine(stack: Stack, capsys: pytest.CaptureFixture[str], *arguments: str) -> Report:
    """Runs ``router-ext doctor --json``."""
    capsys.readouterr()
    code = main(["doctor", str(stack.config), "--json", "--watch", "0.2", *arguments])
    checks = json.loads(capsys.readouterr().out)["checks"]
    return Report(code, {check["id"]: check for check in checks})
