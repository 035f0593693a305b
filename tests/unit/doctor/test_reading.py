"""Both admin interfaces over real sockets: what they say, and what is no fault of ours."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from router_ext.demo.child import free_port
from router_ext.doctor.fetch import AwayError, Pages, admin_session
from router_ext.doctor.pages import NonsenseError, counts_of_router
from router_ext.doctor.reader import read_state
from router_ext.doctor.state import State, Unreadable
from router_ext.model.secret import Secret
from tests.unit.doctor.states import CONFIG, dump, reported

Answer = Callable[[web.Request], web.StreamResponse]

HEALTH = {
    "status": "ok",
    "version": "1",
    "backends": [{"name": name, "health": "healthy", "circuit_open": False} for name in ("a", "b", "c")],
}
HOST = {"address": {"pipe": {"path": "/run/p.sock"}}, "health_status": {"eds_health_status": "HEALTHY"}}
GOOD: Mapping[str, object] = {
    "/server_info": {"state": "LIVE", "version": "0/1.40.0/Clean/RELEASE/BoringSSL"},
    "/config_dump": dump(),
    "/stats": {"stats": [{"name": "a", "value": 1}, {"histograms": {}}]},
    "/clusters": {"cluster_statuses": [{"name": "router-ext", "host_statuses": [HOST]}]},
    "/health": HEALTH,
    "/ready": {"ready": True},
    "/metrics": b"kronaxis_router_config_last_reload_success 1.0\n",
}
ENVOY_PAGES = ("/server_info", "/config_dump", "/stats", "/clusters")
ROUTER_PAGES = ("/health", "/metrics")


@asynccontextmanager
async def served(answer: Answer) -> AsyncIterator[str]:
    """A server that answers every path; its URL."""

    async def handle(request: web.Request) -> web.StreamResponse:
        return answer(request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


async def state_of(pages: Mapping[str, object]) -> State:
    """What is read when both sides answer with ``pages``."""

    def answer(request: web.Request) -> web.StreamResponse:
        page = pages[request.path]
        return web.Response(body=page if isinstance(page, bytes) else orjson.dumps(page))

    async with served(answer) as url, admin_session() as session:
        return await read_state(CONFIG, Pages(session, url), Pages(session, url), 0.0)


async def test_both_sides_are_read() -> None:
    """Every page is used, and nothing but the version of this program is found different."""
    state = await state_of(GOOD)
    assert list(reported(state)) == ["router-version"]
    assert state.running is not None
    assert (state.running.version, state.running.counters.total("a")) == ("1.40.0", 1.0)


@pytest.mark.parametrize("path", ENVOY_PAGES)
@pytest.mark.parametrize(
    "page", [b"", b"<html>", b"[]", b"{}", b"\xff"], ids=["empty", "html", "list", "object", "bytes"]
)
async def test_an_envoy_that_answers_nonsense_is_a_finding(path: str, page: bytes) -> None:
    """Whichever page it is; an empty object is a dump without listeners."""
    state = await state_of({**GOOD, path: page})
    assert isinstance(state.envoy, Unreadable) is not (path == "/config_dump" and page == b"{}")
    assert {"envoy-admin", "ingress-listener"} & set(reported(state))


@pytest.mark.parametrize("path", ROUTER_PAGES)
@pytest.mark.parametrize("page", [b"<html>", b"[]", b"{}", b"\xff"], ids=["html", "list", "object", "bytes"])
async def test_a_router_that_answers_nonsense_is_a_finding(path: str, page: bytes) -> None:
    """A page of another server on that port."""
    state = await state_of({**GOOD, path: page})
    assert isinstance(state.router, Unreadable)
    assert list(reported(state)) == ["router-admin"]


@pytest.mark.parametrize(
    ("health", "healthy"),
    [
        ({"eds_health_status": "HEALTHY"}, True),
        ({"eds_health_status": "DEGRADED"}, True),
        ({"eds_health_status": "HEALTHY", "failed_active_health_check": True}, False),
        ({"eds_health_status": "HEALTHY", "failed_outlier_check": True}, False),
        ({"eds_health_status": "UNHEALTHY"}, False),
        ({}, False),
    ],
    ids=["healthy", "degraded", "failed-check", "outlier", "unhealthy", "silent"],
)
async def test_hosts_are_healthy_when_nothing_speaks_against_it(health: dict[str, object], healthy: bool) -> None:
    """As Envoy itself decides whether to ask them."""
    host = {**HOST, "health_status": health}
    state = await state_of(
        {**GOOD, "/clusters": {"cluster_statuses": [{"name": "router-ext", "host_statuses": [host]}]}}
    )
    assert ("processor-health" not in reported(state)) is healthy


async def test_nobody_there_is_said_in_a_few_words() -> None:
    """The reason is the system's."""
    async with admin_session() as session:
        pages = Pages(session, f"http://127.0.0.1:{free_port()}")
        with pytest.raises(AwayError, match="Connect call failed"):
            await pages.get("/server_info")


async def test_a_server_that_does_not_answer_is_left_in_time() -> None:
    """The deadline is for the whole page."""

    class Silent(web.StreamResponse):
        async def prepare(self, request: web.BaseRequest) -> None:
            await asyncio.Event().wait()

    async with served(lambda _: Silent()) as url, admin_session() as session:
        with pytest.raises(AwayError, match="no answer within"):
            await Pages(session, url, deadline_s=0.05).get("/server_info")


async def test_a_redirect_is_not_followed() -> None:
    """The token would go with it."""
    asked: list[str] = []

    def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.Response(status=302, headers={"location": "/elsewhere"})

    async with served(answer) as url, admin_session() as session:
        with pytest.raises(NonsenseError, match="/health answers with status 302"):
            await Pages(session, url).get("/health")
    assert asked == ["/health"]


async def test_the_token_is_sent_where_it_is_given() -> None:
    """As a bearer token; without one nothing is sent."""
    sent: list[str | None] = []

    def answer(request: web.Request) -> web.StreamResponse:
        sent.append(request.headers.get("authorization"))
        return web.Response()

    async with served(answer) as url, admin_session() as session:
        await Pages(session, url, Secret("t0", "env:ROUTER_API_TOKEN")).get("/health")
        await Pages(session, url).get("/health")
    assert sent == ["Bearer t0", None]


async def test_an_endless_page_is_left() -> None:
    """At 64 MiB."""
    async with served(lambda _: web.Response(body=bytes((64 << 20) + 1))) as url, admin_session() as session:
        with pytest.raises(NonsenseError, match="larger than 64 MiB"):
            await Pages(session, url).get("/config_dump")


@pytest.mark.parametrize(
    ("date", "ahead_s"),
    [("Thu, 01 Jan 1970 00:01:40 GMT", 0.5), ("Thu, 01 Jan 1970 00:02:40 GMT", 60.5), ("yesterday", None)],
    ids=["now", "a-minute-later", "no-date"],
)
async def test_the_clock_of_a_server_is_its_date_header(date: str, ahead_s: float | None) -> None:
    """Half a second is added, for it is cut to the second; a header that is no date tells nothing."""
    async with (
        served(lambda _: web.Response(headers={"date": date})) as url,
        admin_session() as session,
    ):
        assert (await Pages(session, url, now=lambda: 100.0).get("/")).ahead_s == ahead_s


def test_metrics_are_summed_over_their_labels() -> None:
    """By the name of the sample."""
    page = b'# TYPE x counter\nx_total{a="1"} 2.0\nx_total{a="2"} 3.0\n# TYPE y gauge\ny 1.0\n'
    assert counts_of_router(page) == {"x_total": 5.0, "y": 1.0}
