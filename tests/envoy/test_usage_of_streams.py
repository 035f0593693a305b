"""Streams whose clients do not ask for usage, behind the real Envoy: what is booked, and what clients get."""

import asyncio
import json
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.envoy.rig import wait_until
from tests.envoy.stack import CHAT, Stack, chat, http, stack

CONFIG = """
backends:
  - {name: a, url: "http://127.0.0.1:{a}", type: vllm, model_name: m, cost_input_1m: 2, cost_output_1m: 10}
rules:
  - {name: free, match: {service: free}, backends: [a]}
budgets:
  shop: {daily_limit_usd: 1}
defaults: {fallback_chain: [a]}
"""
FAST: Sequence[str] = ["--model", "m", "--prefill-tps", "10000000", "--decode-tps", "100000"]
COMPLETIONS = "/v1/completions"
ASKS = {"include_usage": True}
ESTIMATED = "kronaxis_router_usage_estimated_total"
DONE = b"data: [DONE]\n\n"


@pytest.fixture(scope="module")
def running() -> Iterator[Stack]:
    """One stack for all tests."""
    with stack(CONFIG, {"a": FAST}) as started:
        yield started


def booked(running: Stack, service: str) -> tuple[int, int, int, int]:
    """Calls, those whose tokens are estimated, prompt and completion tokens of a service."""
    with urllib.request.urlopen(running.admin_url + "/api/costs", timeout=5) as answer:
        rows = [row for row in json.load(answer)["rows"] if row["service"] == service]
    names = ("calls", "estimated_calls", "prompt_tokens", "completion_tokens")
    calls, estimated, prompt, completion = (sum(row[name] for row in rows) for name in names)
    return calls, estimated, prompt, completion


def raw(body: dict[str, Any]) -> bytes:
    """The body as it is sent."""
    return json.dumps(body).encode()


async def post(url: str, body: bytes, service: str) -> bytes:
    """The bytes of an answer."""
    headers = {"x-kronaxis-service": service, "content-type": "application/json"}
    async with http() as session, session.post(url, data=body, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.read()


async def direct(running: Stack, path: str, body: bytes) -> tuple[bytes, dict[str, int]]:
    """What the backend itself streams when it is asked for usage, without the event that has it; and the usage. Equal
    bodies give equal ids.
    """
    url = f"http://127.0.0.1:{running.sim_ports['a']}{path}"
    wire = await post(url, b'{"stream_options":{"include_usage":true},' + body[1:], "")
    events = wire.split(b"\n\n")
    assert events[-2:] == [b"data: [DONE]", b""]
    counted = json.loads(events[-3].removeprefix(b"data: "))
    assert counted["choices"] == []
    return b"\n\n".join(events[:-3]) + b"\n\n" + DONE, counted["usage"]


def _requests() -> list[tuple[str, bytes]]:
    more = {"stream": True, "ignore_eos": True}
    chats = [(CHAT, raw(chat("m", f"number {number}", max_tokens=1 + 30 * number, **more))) for number in range(4)]
    return [*chats, (COMPLETIONS, raw({"model": "m", "prompt": "Once", "max_tokens": 12, **more}))]


async def test_under_a_budget_streams_are_booked_as_the_engine_counts_them(running: Stack) -> None:
    """The client gets the engine's bytes without the usage event."""
    before, wanted = booked(running, "shop"), [0, 0, 0, 0]
    for path, body in _requests():
        without, usage = await direct(running, path, body)
        assert await post(running.url + path, body, "shop") == without
        wanted = [
            wanted[0] + 1,
            0,
            wanted[2] + usage["prompt_tokens"],
            wanted[3] + usage["completion_tokens"],
        ]
    expected = tuple(old + new for old, new in zip(before, wanted, strict=True))
    await asyncio.to_thread(wait_until, lambda: booked(running, "shop") == expected, "all to be booked")


async def test_a_client_that_asks_gets_the_usage_event(running: Stack) -> None:
    """All bytes as the engine sends them."""
    body = raw(chat("m", "and how much?", stream=True, max_tokens=5, stream_options=ASKS))
    expected = await post(f"http://127.0.0.1:{running.sim_ports['a']}{CHAT}", body, "")
    assert b'"choices":[],"usage"' in expected
    assert await post(running.url + CHAT, body, "shop") == expected


async def test_without_a_budget_streams_are_estimated_and_counted(running: Stack) -> None:
    """Near the truth once the model's exact answers were learned from; the backend is not asked."""
    before, counted = booked(running, "free"), running.metric(ESTIMATED, backend="a")
    exact, options = {"stream": True, "max_tokens": 60, "ignore_eos": True}, {"stream_options": ASKS}
    for number in range(3):
        await post(running.url + CHAT, raw(chat("m", f"learn {number}", **exact, **options)), "learn")
    await asyncio.to_thread(wait_until, lambda: booked(running, "other")[0] >= 3, "the exact answers to be booked")
    body = raw(chat("m", "tell me", **exact))
    url = f"http://127.0.0.1:{running.sim_ports['a']}{CHAT}"
    assert await post(running.url + CHAT, body, "free") == await post(url, body, "")
    _, usage = await direct(running, CHAT, body)
    await asyncio.to_thread(wait_until, lambda: booked(running, "free")[0] == before[0] + 1, "it to be booked")
    after = booked(running, "free")
    assert after[1] == before[1] + 1
    assert running.metric(ESTIMATED, backend="a") == counted + 1
    assert 0.8 <= (after[3] - before[3]) / usage["completion_tokens"] <= 1.25
    assert 0.5 <= (after[2] - before[2]) / usage["prompt_tokens"] <= 2


async def test_a_stream_that_breaks_under_a_budget_is_estimated(running: Stack) -> None:
    """What came until then was paid for; the client is told that it broke."""
    before = booked(running, "shop")
    running.sim_faults("a", cut_after_events=10)
    try:
        body = raw(chat("m", "this breaks", stream=True, max_tokens=60, ignore_eos=True))
        told = await post(running.url + CHAT, body, "shop")
    finally:
        running.sim_faults("a")
    assert b"stream_truncated" in told
    await asyncio.to_thread(wait_until, lambda: booked(running, "shop")[0] == before[0] + 1, "it to be booked")
    after = booked(running, "shop")
    assert after[1] == before[1] + 1
    assert 5 <= after[3] - before[3] <= 20, (before, after)
