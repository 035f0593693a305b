"""Sessions in a real server of Redis' protocol, which dies and comes back, as does the router."""

import asyncio
from collections.abc import Iterator

import aiohttp
import pytest

from tests.envoy.rig import wait_until
from tests.envoy.stack import CHAT, Stack, chat, http, stack
from tests.envoy.test_sessions import BACKENDS, CREATE, SIMS, stored, turn
from tests.fakes.valkey_server import ValkeyServer, valkey_server

SESSIONS = "  sessions: {{enabled: true, store: redis, redis_url: '{url}'}}\n"


@pytest.fixture
def store() -> Iterator[ValkeyServer]:
    """A server of its own for each test."""
    with valkey_server() as server:
        yield server


@pytest.fixture
def running(store: ValkeyServer) -> Iterator[Stack]:
    """A stack whose sessions are in the server."""
    with stack(BACKENDS, SIMS, server_extra=SESSIONS.format(url=store.url.reveal())) as started:
        yield started


async def session_of(running: Stack, text: str = "one") -> dict[str, str]:
    """The headers that continue a new session."""
    status, headers, _ = await turn(running, text, CREATE)
    assert status == 200
    await asyncio.to_thread(wait_until, lambda: running.in_flight() == 0, "the first turn to be settled")
    return {"x-kronaxis-session-id": headers["x-kronaxis-session-id"]}


async def test_a_session_outlives_the_router(running: Stack) -> None:
    """kill -9 right after an answer: the turn is there, and the next one continues it."""
    session = await session_of(running)
    assert (await turn(running, "two", session, stream=True))[0] == 200
    running.router.kill()
    running.start_router()
    running.await_routed()
    assert (await turn(running, "three", session))[0] == 200
    kept = stored(running, session["x-kronaxis-session-id"])
    assert kept is not None
    assert kept["turns"] == 3


async def test_without_the_store_only_sessions_are_refused(running: Stack, store: ValkeyServer) -> None:
    """503 with ``Retry-After``, never a shortened conversation; when it is back, so are they."""
    session = await session_of(running)
    store.freeze()
    plain = await asyncio.gather(*(turn(running, "no session", {}, stream=n % 2 == 0) for n in range(10)))
    assert {status for status, _, _ in plain} == {200}
    status, headers, body = await turn(running, "two", session)
    assert (status, headers["retry-after"]) == (503, "2")
    assert b"session_store_unavailable" in body
    store.thaw()
    async with asyncio.timeout(10.0):
        while (await turn(running, "two", session))[0] != 200:
            pass


async def test_a_turn_that_cannot_be_kept_is_not_acknowledged(running: Stack, store: ValkeyServer) -> None:
    """The store goes away while the backend answers: a plain answer is a 503, a stream ends with an error event."""
    session = await session_of(running)
    for name in SIMS:
        running.sim_faults(name, first_token_delay_s=0.5)
    turns = [asyncio.create_task(turn(running, "two", session, stream=stream)) for stream in (False, True)]
    await asyncio.to_thread(wait_until, lambda: running.in_flight() == 2, "both turns to be with a backend")
    store.freeze()
    (plain, _, _), (stream, _, events) = await asyncio.gather(*turns)
    assert (plain, stream) == (503, 200)
    assert b'"code":"session_store_unavailable"' in events
    store.thaw()


async def test_a_turn_in_progress_is_not_acknowledged_when_the_router_dies(running: Stack) -> None:
    """Its client is told 503; requests without a session fail open, and the session is what it was."""
    session = await session_of(running)
    for name in SIMS:
        running.sim_faults(name, delay_s=0.5)
    plain, stream = (asyncio.create_task(turn(running, "two", session, stream=stream)) for stream in (False, True))
    other = asyncio.create_task(turn(running, "no session", {}, stream=True))
    await asyncio.to_thread(wait_until, lambda: running.in_flight() == 3, "the requests to be with a backend")
    running.router.kill()
    status, headers, body = await plain
    assert (status, headers["retry-after"]) == (503, "2")
    assert b"router_unavailable" in body
    assert (await stream)[0] == 503
    assert (await other)[2].endswith(b"data: [DONE]\n\n")
    running.start_router()
    running.await_routed()
    kept = stored(running, session["x-kronaxis-session-id"])
    assert kept is not None
    assert kept["turns"] == 1


async def test_a_stream_of_a_session_breaks_when_the_router_dies_in_it(running: Stack) -> None:
    """Its client never sees the end."""
    session = await session_of(running)
    body = chat("m", "two", max_tokens=400, ignore_eos=True, stream=True)
    async with http() as client, client.post(running.url + CHAT, json=body, headers=session) as answer:
        assert await answer.content.readline()
        running.router.kill()
        with pytest.raises(aiohttp.ClientError):
            await answer.read()
