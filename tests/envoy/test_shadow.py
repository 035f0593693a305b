"""Shadow traffic behind the real Envoy: the caller notices nothing, and both answers are compared."""

import asyncio
import json
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from tests.envoy.rig import wait_until
from tests.envoy.stack import CHAT, Stack, chat, http, stack

CONFIG = """
backends:
  - {name: a, url: "http://127.0.0.1:{a}", type: vllm, model_name: m, cost_input_1m: 2, cost_output_1m: 10,
     api_key: env:KEY_A, circuit_breaker: {error_threshold: 3, window_seconds: 10s}}
  - {name: b, url: "http://127.0.0.1:{b}", type: vllm, model_name: big, cost_input_1m: 1, cost_output_1m: 5,
     api_key: env:KEY_B}
rules:
  - {name: shop, priority: 1, match: {service: shop}, backends: [a]}
ab_tests:
  - {name: cheaper, match: {service: shop}, variant_a: a, variant_b: b, split_pct: 100, mode: shadow}
defaults: {fallback_chain: [a]}
"""
FAST = ["--prefill-tps", "10000000", "--decode-tps", "100000"]
SIMS: dict[str, Sequence[str]] = {
    "a": ["--model", "m", "--api-key", "key-of-a", *FAST],
    "b": ["--model", "big", "--api-key", "key-of-b", *FAST],
}
SHADOWS = "kronaxis_router_shadow_total"


@contextmanager
def shadowing(config: str = CONFIG) -> Iterator[Stack]:
    """Two backends, each of which refuses any key but its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KEY_A", "key-of-a")
        patch.setenv("KEY_B", "key-of-b")
        with stack(config, SIMS) as running:
            yield running


@pytest.fixture(scope="module")
def started() -> Iterator[Stack]:
    """One stack for all tests in which no shadow hangs."""
    with shadowing() as running:
        yield running


@pytest.fixture
def running(started: Stack) -> Iterator[Stack]:
    """The stack, whose backends answer as they should before and after."""
    yield started
    for name in SIMS:
        started.sim_faults(name)
    wait_until(lambda: started.in_flight() == 0, "nothing in flight")


async def ask(running: Stack, content: str, service: str = "shop", **more: Any) -> tuple[int, bytes, float]:
    """Status, body and seconds of one request."""
    began = time.monotonic()
    headers = {"x-kronaxis-service": service}
    async with (
        http() as session,
        session.post(running.url + CHAT, json=chat("m", content, max_tokens=8, **more), headers=headers) as answer,
    ):
        return answer.status, await answer.read(), time.monotonic() - began


def figures(running: Stack) -> dict[str, Any]:
    """What the admin API tells of the shadows."""
    with urllib.request.urlopen(running.admin_url + "/api/ab-tests", timeout=5) as answer:
        found: dict[str, Any] = json.load(answer)["ab_tests"][0]["shadow"]
    return found


@pytest.mark.parametrize("stream", [False, True])
async def test_the_caller_gets_the_bytes_of_an_answer_without_a_shadow(running: Stack, stream: bool) -> None:
    """And the other backend is asked under its own model name and key, which it would refuse otherwise."""
    compared = running.metric(SHADOWS, result="compared")
    status, shadowed, _ = await ask(running, "What is said?", stream=stream)
    assert (status, shadowed) == (200, (await ask(running, "What is said?", "another", stream=stream))[1])
    await asyncio.to_thread(
        wait_until, lambda: running.metric(SHADOWS, result="compared") == compared + 1, "the comparison"
    )
    assert figures(running)["samples"] >= 1


async def test_a_shadow_that_hangs_costs_the_caller_nothing() -> None:
    """Neither bytes nor time; those beyond the bound are dropped and counted."""
    with shadowing(CONFIG.replace("mode: shadow", "mode: shadow, max_inflight: 4")) as running:
        plain = sorted([(await ask(running, f"quiet {number}", "another"))[2] for number in range(40)])
        running.sim_faults("b", hang=True)
        answers = [await ask(running, f"hung {number}") for number in range(40)]
        assert {status for status, _, _ in answers} == {200}
        hung = sorted(seconds for _, _, seconds in answers)
        # A shadowed answer goes through the router, which takes milliseconds; a shadow that holds it up takes a minute.
        assert hung[38] < plain[38] + 2.0
        assert running.metric(SHADOWS, result="dropped") == 36
        await asyncio.to_thread(wait_until, lambda: running.in_flight_of("a") == 0, "the answers to be settled")
        assert running.in_flight_of("b") == 4


async def test_errors_of_the_shadow_reach_nobody(running: Stack) -> None:
    """No caller, and no breaker."""
    running.sim_faults("b", status=500)
    failed = running.metric(SHADOWS, result="failed")
    for number in range(6):
        assert (await ask(running, f"error {number}"))[0] == 200
    await asyncio.to_thread(
        wait_until, lambda: running.metric(SHADOWS, result="failed") > failed, "failures to be noted"
    )
    assert running.metric("kronaxis_router_circuit_open") == 0
    assert running.metric("kronaxis_router_errors_total") == 0


async def test_what_a_shadow_costs_is_booked_as_such(running: Stack) -> None:
    """And shown beside that of the answer."""
    await ask(running, "cost")
    cost = "kronaxis_router_cost_usd_total"
    await asyncio.to_thread(wait_until, lambda: running.metric(cost, backend="b", kind="shadow") > 0, "the booking")
    assert running.metric(cost, backend="b", kind="proxied") == 0
    assert figures(running)["cost"]["a_per_1000_usd"] > figures(running)["cost"]["b_per_1000_usd"]
