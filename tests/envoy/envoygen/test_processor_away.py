"""Requests while the processor is absent, stopped or killed: they are served, except where that would be wrong."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiohttp import web

from tests.envoy.envoygen.fake_processor import FakeProcessor, Plan
from tests.envoy.envoygen.stand import FakeBackend, Stand, eventually, stand

CHAT = "/v1/chat/completions"


async def _post(s: Stand, **headers: str) -> tuple[int, float]:
    """The status of an exchange, and the seconds that it took."""
    started = time.monotonic()
    answer = await s.post(CHAT, **headers)
    return answer.status, time.monotonic() - started


async def _until_routed(s: Stand, backend: FakeBackend, count: int) -> None:
    """Sends requests until ``backend`` has had ``count``: Envoy's workers hear of health later than its statistics."""
    end = time.monotonic() + 10
    while len(backend.seen) < count:
        assert time.monotonic() < end, f"{backend.name} gets no request"
        assert (await _post(s))[0] == 200


@contextmanager
def _processor_process(s: Stand) -> Iterator[int]:
    """The fake processor in a process of its own, which routes to cluster ``backend-routed``; gives its process id."""
    command = [sys.executable, "-m", "tests.envoy.envoygen.fake_processor"]
    process = subprocess.Popen([*command, str(s.config.server.processor_address), "backend-routed"])
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait(timeout=5)


async def test_without_a_processor_requests_are_served_at_once(tmp_path: Path) -> None:
    """An unhealthy processor is not asked: the answer comes well before ``message_timeout`` (1 s)."""
    async with stand(tmp_path, FakeBackend("a")) as s:
        status, took_s = await _post(s)
    assert status == 200
    assert took_s < 0.5


async def test_without_a_processor_only_keyless_backends_of_the_chain_are_used(tmp_path: Path) -> None:
    """A backend outside the fallback chain gets nothing."""
    a, b = FakeBackend("a"), FakeBackend("b")
    async with stand(tmp_path, a, b, chain=("b",)) as s:
        assert (await _post(s))[0] == 200
    assert (len(a.seen), len(b.seen)) == (0, 1)


@pytest.mark.parametrize("header", ["x-kronaxis-session-create", "x-kronaxis-session-id", "x-kronaxis-session-end"])
async def test_a_session_request_without_a_processor_is_refused(header: str, tmp_path: Path) -> None:
    """A turn without its history would be answered wrongly: 503, to be tried again in two seconds."""
    a = FakeBackend("a")
    async with stand(tmp_path, a) as s:
        answer = await s.post(CHAT, **{header: "x"})
    assert (answer.status, answer.headers["retry-after"]) == (503, "2")
    assert answer.headers["content-type"] == "application/json"
    error = answer.error
    assert (error["type"], error["code"], error["param"]) == ("service_unavailable", "router_unavailable", None)
    assert a.seen == []


async def test_a_session_request_with_a_processor_is_routed(tmp_path: Path) -> None:
    """The refusal is only for requests that nobody routed."""
    processor = FakeProcessor(Plan({"x-kronaxis-cluster": "backend-a"}))
    async with stand(tmp_path, FakeBackend("a"), processor=processor) as s:
        assert (await _post(s, **{"x-kronaxis-session-id": "x"}))[0] == 200


async def test_without_a_processor_and_a_keyless_backend_the_answer_is_503(tmp_path: Path) -> None:
    """The fail-open cluster has no endpoint then."""
    async with stand(tmp_path, FakeBackend("a"), chain=()) as s, s.client.post(s.url + CHAT, data=b"{}") as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (503, "upstream_unavailable")


async def test_a_stopped_processor_costs_the_message_timeout_and_then_nothing(tmp_path: Path) -> None:
    """SIGSTOP: the next request is late by ``message_timeout``; after three failed health checks none is late."""
    routed, spare = FakeBackend("routed"), FakeBackend("spare")
    async with stand(tmp_path, routed, spare, chain=("spare",), message_timeout_s=0.5) as s:
        with _processor_process(s) as pid:
            await _until_routed(s, routed, 1)
            spare.seen.clear()
            os.kill(pid, signal.SIGSTOP)
            status, took_s = await _post(s)
            assert status == 200
            assert 0.4 < took_s < 0.9
            await eventually(lambda: s.envoy.stat("cluster.router-ext.membership_healthy") == 0, "unhealthy processor")
            status, took_s = await _post(s)
            assert status == 200
            assert took_s < 0.3
            os.kill(pid, signal.SIGCONT)
            assert (len(routed.seen), len(spare.seen)) == (1, 2)
            await _until_routed(s, routed, 2)


async def test_a_killed_processor_leaves_streams_whole(tmp_path: Path) -> None:
    """SIGKILL in the middle of a streamed answer: the client receives all of it."""
    first_sent, go_on = asyncio.Event(), asyncio.Event()

    async def pieces(_: web.Request) -> AsyncIterator[bytes]:
        yield b"data: 1\n\n"
        first_sent.set()
        await go_on.wait()
        yield b"data: [DONE]\n\n"

    async with stand(tmp_path, FakeBackend("routed", stream=pieces), chain=()) as s:
        with _processor_process(s) as pid:
            await eventually(lambda: s.envoy.stat("cluster.router-ext.membership_healthy") == 1, "healthy processor")
            async with s.client.post(s.url + CHAT, data=b"{}") as answer:
                await first_sent.wait()
                os.kill(pid, signal.SIGKILL)
                go_on.set()
                assert await answer.read() == b"data: 1\n\ndata: [DONE]\n\n"
