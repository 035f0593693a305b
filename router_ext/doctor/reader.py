"""Reads both sides. A side that cannot be read is a state of its own, never an exception."""

import asyncio
from typing import Final

import orjson

from router_ext.config.sections import RouterConfig
from router_ext.doctor import pages
from router_ext.doctor.fetch import AwayError, Pages
from router_ext.doctor.node import Node
from router_ext.doctor.pages import NonsenseError
from router_ext.doctor.state import Counters, EnvoyState, RouterState, State, Unreadable
from router_ext.doctor.wiring import Wiring, from_dump, from_rendered
from router_ext.envoygen import render_bootstrap, render_clusters
from router_ext.version import __version__

_STATS: Final = "/stats?format=json&type=Counters"
_GAUGES: Final = "/stats?format=json&type=Gauges"
_ANY_READINESS: Final = frozenset({200, 503})


async def read_state(config: RouterConfig, envoy: Pages, router: Pages, watch_s: float) -> State:
    """Both sides, with counters that are read again after ``watch_s`` seconds.

    Raises envoygen.CaBundleNotFoundError as rendering does.
    """
    expected = rendered(config)
    envoy_state, router_state = await asyncio.gather(_read_envoy(envoy, watch_s), _read_router(router, watch_s))
    return State(config, expected, envoy_state, router_state, __version__)


def rendered(config: RouterConfig) -> Wiring:
    """What ``router-ext envoy-config`` would write. Raises envoygen.CaBundleNotFoundError."""
    return from_rendered(_through_json(render_bootstrap(config)), _through_json(render_clusters(config)))


def _through_json(value: object) -> Node:
    return Node(orjson.loads(orjson.dumps(value)))


async def _read_envoy(admin: Pages, watch_s: float) -> EnvoyState | Unreadable:
    try:
        return await _envoy(admin, watch_s)
    except (AwayError, NonsenseError) as error:
        return Unreadable(admin.base, str(error))


async def _envoy(admin: Pages, watch_s: float) -> EnvoyState:
    info_page = await admin.get("/server_info")
    info = pages.document(info_page.body)
    if not info.at("state").text:
        raise NonsenseError("/server_info is not that of an Envoy")
    before = await _envoy_counts(admin)
    dump = pages.document((await admin.get("/config_dump")).body)
    await asyncio.sleep(watch_s)
    after = await _envoy_counts(admin)
    clusters = pages.document((await admin.get("/clusters?format=json")).body)
    return EnvoyState(
        wiring=from_dump(dump),
        hosts=pages.hosts_of(clusters),
        counters=Counters(before, after, watch_s),
        state=info.at("state").text,
        version=_short_version(info.at("version").text),
        ahead_s=info_page.ahead_s,
    )


async def _envoy_counts(admin: Pages) -> dict[str, float]:
    found: dict[str, float] = {}
    for path in (_STATS, _GAUGES):
        found |= pages.counts_of_envoy(pages.document((await admin.get(path)).body))
    return found


def _short_version(version: str) -> str:
    """``1.40.0`` of ``REVISION/1.40.0/Clean/RELEASE/BoringSSL``."""
    parts = version.split("/")
    return parts[1] if len(parts) > 1 else version


async def _read_router(admin: Pages, watch_s: float) -> RouterState | Unreadable:
    try:
        return await _router(admin, watch_s)
    except (AwayError, NonsenseError) as error:
        return Unreadable(admin.base, str(error))


async def _router(admin: Pages, watch_s: float) -> RouterState:
    before = pages.counts_of_router((await admin.get("/metrics")).body)
    await asyncio.sleep(watch_s)
    health_page = await admin.get("/health", _ANY_READINESS)
    health = pages.document(health_page.body)
    backends = pages.backends_of(health)
    ready = await admin.get("/ready", _ANY_READINESS)
    after = pages.counts_of_router((await admin.get("/metrics")).body)
    return RouterState(
        version=health.at("version").text,
        ready=ready.status == 200,
        backends=backends,
        counters=Counters(before, after, watch_s),
        ahead_s=health_page.ahead_s,
    )
