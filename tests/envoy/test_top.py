"""``router-ext top`` beside the whole stack: what it shows is what happened."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.processes import run, terminal
from tests.envoy.rig import wait_until
from tests.envoy.stack import CHAT, Stack, chat, http, stack

SERVER = """\
  queue_aware_routing: true
  queue_scrape_interval: 200ms
  kv_pinning: {enabled: true}
"""
CONFIG = """\
backends:
  - {name: near, url: "http://127.0.0.1:{near}", type: vllm, model_name: m, cost_input_1m: 1000, cost_output_1m: 1000}
  - {name: far, url: "http://127.0.0.1:1", type: vllm, model_name: m}
budgets: {default: {daily_limit_usd: 100}}
"""
SPENT = "kronaxis_router_spent_today_usd"


@pytest.fixture(scope="module")
def running() -> Iterator[Stack]:
    """One backend that serves, and one that is down."""
    with stack(CONFIG, {"near": ("--model", "m")}, server_extra=SERVER) as started:
        yield started


async def _ask(running: Stack, times: int) -> None:
    async with http() as client:
        for _ in range(times):
            async with client.post(running.url + CHAT, json=chat("m", max_tokens=4)) as answer:
                assert answer.status == 200
                await answer.read()


def test_figures_are_those_of_the_router(running: Stack) -> None:
    """Requests, health, times, pins and spending of each backend, and the budget."""

    asyncio.run(_ask(running, 5))
    wait_until(lambda: running.in_flight() == 0 and running.metric(SPENT) > 0, "the requests to be settled")
    ended = asyncio.run(run("top", "--once", "--json", "--interval", "100ms", "--admin", running.admin_url))
    assert (ended.code, ended.err) == (0, "")
    frame: dict[str, Any] = json.loads(ended.out)["router"]
    near, far = frame["backends"]
    assert (near["backend"], near["health"], near["in_flight"], near["requests_s"]) == ("near", "healthy", 0, 0.0)
    assert (far["backend"], far["health"], far["ttft_p50_ms"]) == ("far", "down", None)
    assert near["ttft_p50_ms"] is not None
    assert near["queue"] == 0.0
    assert near["pin_hit_ratio"] is not None
    assert near["spend_usd"] == pytest.approx(frame["spend_usd"])
    assert frame["budget"] is not None


def test_a_router_that_is_started_again_comes_back(running: Stack) -> None:
    """On the terminal: it is gone, and then it is there."""

    async def shown() -> int:
        with terminal("top", "--interval", "100ms", "--admin", running.admin_url) as screen:
            await screen.until(b"healthy")
            running.router.stop()
            await screen.until(b"does not answer")
            screen.shown = b""
            await asyncio.to_thread(running.start_router)
            # The last table is dim while the router is away, and has its colours again afterwards.
            await screen.until(b"\x1b[32mhealthy")
            screen.press(b"q")
            return await screen.ended()

    assert asyncio.run(shown()) == 0
