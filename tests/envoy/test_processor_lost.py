"""router_ext dies, stalls, restarts or drains under load: no client that does not need it sees an error."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import aiohttp
import pytest

from tests.envoy.rig import wait_until
from tests.envoy.stack import CHAT, Stack, chat, http, stack

CONFIG = """
backends:
  - {name: a, url: "http://127.0.0.1:{a}", type: vllm, model_name: m, aliases: [alias]}
  - {name: b, url: "http://127.0.0.1:{b}", type: vllm, model_name: m, aliases: [alias]}
defaults: {fallback_chain: [a, b]}
"""
SIM = ["--model", "m", "--alias", "alias", "--decode-tps", "40"]
SESSION = {"x-kronaxis-session-id": "sess_00000000-0000-4000-8000-000000000000"}


@pytest.fixture
def running() -> Iterator[Stack]:
    """A stack of its own for each test, as the processor does not survive it."""
    with stack(CONFIG, {"a": SIM, "b": SIM}) as started:
        yield started


async def ask(session: aiohttp.ClientSession, running: Stack, *, stream: bool, tokens: int, **headers: str) -> int:
    """The status of one request; 0 for an answer that is not whole."""
    body = chat("alias", max_tokens=tokens, stream=stream, ignore_eos=True)
    async with session.post(running.url + CHAT, json=body, headers=headers) as answer:
        content = await answer.read()
    if answer.status != 200:
        return answer.status
    whole = content.rstrip().endswith(b"data: [DONE]") if stream else b'"finish_reason"' in content
    return 200 if whole else 0


async def under_load(running: Stack, disturb: Callable[[], Awaitable[Any]]) -> list[int]:
    """200 requests in two seconds, half of them streams of one second; the disturbance comes in the middle."""
    async with http() as session:

        async def one(number: int) -> int:
            await asyncio.sleep(number * 0.01)
            return await ask(session, running, stream=number % 2 == 0, tokens=40 if number % 2 == 0 else 4)

        async def disturbance() -> None:
            await asyncio.sleep(1.0)
            await disturb()

        statuses, _ = await asyncio.gather(asyncio.gather(*(one(number) for number in range(200))), disturbance())
    return statuses


async def test_killing_the_processor_fails_no_request_and_routing_comes_back(running: Stack) -> None:
    """kill -9 under load: every answer is whole; a session request gets 503; a restart brings routing back."""

    async def kill() -> None:
        running.router.kill()

    assert await under_load(running, kill) == [200] * 200
    async with http() as session:
        body = chat("alias", max_tokens=2)
        async with session.post(running.url + CHAT, json=body, headers=SESSION) as answer:
            assert answer.status == 503
            assert int(answer.headers["retry-after"]) >= 1
            error = (await answer.json())["error"]
            assert error["code"] == "router_unavailable"
    running.start_router()
    running.await_routed()
    wait_until(lambda: running.in_flight() == 0, "no request in flight")


async def test_a_stalled_processor_costs_time_and_no_request(running: Stack) -> None:
    """SIGSTOP is like death, late by the message timeout: every answer is whole, session requests get 503."""

    async def stall() -> None:
        running.router.send(signal.SIGSTOP)

    assert await under_load(running, stall) == [200] * 200
    async with http() as session:
        assert await ask(session, running, stream=False, tokens=2, **SESSION) == 503
    running.router.send(signal.SIGCONT)
    running.await_routed()
    wait_until(lambda: running.in_flight() == 0, "no request in flight", 20.0)


async def test_requests_without_the_router_are_counted(running: Stack) -> None:
    """After a stall, entries of requests that no decision belongs to show as bypassed."""
    running.router.send(signal.SIGSTOP)
    async with http() as session:
        assert await ask(session, running, stream=False, tokens=2) == 200
    running.router.send(signal.SIGCONT)
    wait_until(lambda: running.metric("kronaxis_router_bypassed_total", route="fail-open") >= 1, "a bypassed request")


async def test_sigterm_lets_running_streams_finish_and_settles_them(running: Stack) -> None:
    """A drain: streams that run end whole, new requests are served by Envoy, the exit code is 0."""
    async with http() as session:
        streams = [asyncio.create_task(ask(session, running, stream=True, tokens=80)) for _ in range(10)]
        async with asyncio.timeout(10):
            while running.in_flight() < 10:  # noqa: ASYNC110 - the condition is another process's
                await asyncio.sleep(0.02)
        running.router.send(signal.SIGTERM)
        later = [await ask(session, running, stream=False, tokens=2) for _ in range(10)]
        assert later == [200] * 10
        assert await asyncio.gather(*streams) == [200] * 10
    wait_until(lambda: running.router.exit_code is not None, "the router to end")
    assert running.router.exit_code == 0
    settled = [line for line in running.log_events("exchange") if line["stream"]]
    assert len(settled) == 10
    assert running.log_events("stopped")[0]["open_requests"] == 0
