"""A state in which all is well, to be changed in one place."""

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from router_ext.config.sections import Defaults, RouterConfig, Server, UnixAddress
from router_ext.doctor.diagnosis import diagnose
from router_ext.doctor.node import Node
from router_ext.doctor.reader import rendered
from router_ext.doctor.state import Counters, EnvoyState, Host, RouterState, RunningBackend, State
from router_ext.doctor.wiring import Wiring, from_dump
from router_ext.envoygen import render_bootstrap, render_clusters
from router_ext.model.backend import Backend, BackendType, Endpoint

Document = dict[str, Any]

CONFIG = RouterConfig(
    server=Server(processor_address=UnixAddress(Path("/run/p.sock"))),
    backends=(
        Backend("a", Endpoint("http", "10.0.0.1", 8000), BackendType.VLLM, "m"),
        Backend("b", Endpoint("http", "b.example", 8000), BackendType.OPENAI, "m"),
        Backend("c", Endpoint("https", "c.example", 443), BackendType.OPENAI, "m"),
    ),
    defaults=Defaults(("a",)),
)
PROCESSOR = "cluster.router-ext.membership_healthy"
NO_COUNTS = Counters({}, {}, 2.0)


def dump(config: RouterConfig = CONFIG) -> Document:
    """A ``/config_dump`` page of an Envoy on the rendered files, which may be changed."""
    bootstrap, clusters = (copy.deepcopy(page) for page in _rendered_files(config))
    static = bootstrap["static_resources"]
    return {
        "configs": [
            _section("BootstrapConfigDump", bootstrap=bootstrap),
            _section(
                "ClustersConfigDump",
                static_clusters=[{"cluster": one} for one in static["clusters"]],
                dynamic_active_clusters=[{"cluster": one} for one in clusters["resources"]],
            ),
            _section("ListenersConfigDump", static_listeners=[{"listener": one} for one in static["listeners"]]),
        ]
    }


@cache
def _rendered_files(config: RouterConfig) -> tuple[Document, Document]:
    """Rendering takes half a second."""
    return render_bootstrap(config), render_clusters(config)


@cache
def _rendered_wiring(config: RouterConfig) -> Wiring:
    return rendered(config)


def _section(name: str, **content: object) -> Document:
    return {"@type": f"type.googleapis.com/envoy.admin.v3.{name}", **content}


def wiring(change: Callable[[Document], None] = lambda _: None, config: RouterConfig = CONFIG) -> Wiring:
    """What that page says, after ``change``."""
    page = dump(config)
    change(page)
    return from_dump(Node(page))


def good(config: RouterConfig = CONFIG) -> State:
    """Nothing is wrong."""
    envoy = EnvoyState(
        wiring(config=config), {"router-ext": (Host("unix:/run/p.sock", True),)}, NO_COUNTS, "LIVE", "1.40.0", 0.0
    )
    backends = tuple(RunningBackend(one.name, "healthy", False) for one in config.backends)
    return State(config, _rendered_wiring(config), envoy, RouterState("1", True, backends, NO_COUNTS, 0.0), "1")


def with_envoy(state: State, /, **changes: Any) -> State:
    """The state with another Envoy."""
    assert isinstance(state.envoy, EnvoyState)
    return replace(state, envoy=replace(state.envoy, **changes))


def with_router(state: State, /, **changes: Any) -> State:
    """The state with another router."""
    assert isinstance(state.router, RouterState)
    return replace(state, router=replace(state.router, **changes))


def changed(change: Callable[[Document], None]) -> State:
    """The state in which Envoy's ``/config_dump`` is changed."""
    return with_envoy(good(), wiring=wiring(change))


def reported(state: State) -> dict[str, list[str]]:
    """What is wrong, by check."""
    return {one.check.id: [finding.wrong for finding in one.findings] for one in diagnose(state) if one.findings}


def skipped(state: State) -> set[str]:
    """The checks that had nothing to look at."""
    return {one.check.id for one in diagnose(state) if one.findings is None}


def listener(page: Document, number: int = 0) -> Document:
    """The ingress listener of a dump, or the egress listener (1)."""
    found: Document = page["configs"][2]["static_listeners"][number]["listener"]
    return found


def manager(page: Document) -> Document:
    """The HTTP connection manager of the ingress listener."""
    found: Document = listener(page)["filter_chains"][0]["filters"][0]["typed_config"]
    return found


def cluster(page: Document, name: str) -> Document:
    """A cluster of a dump."""
    section = page["configs"][1]
    entries = [*section["static_clusters"], *section["dynamic_active_clusters"]]
    found: Document = next(entry["cluster"] for entry in entries if entry["cluster"]["name"] == name)
    return found
