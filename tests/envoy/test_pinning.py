"""Pinning through the real Envoy: conversations stay where their prefix is cached, and the engine agrees."""

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.envoy.rig import wait_until
from tests.envoy.stack import CHAT, Stack, http, stack

CONFIG = """
backends:
  - {name: a, url: "http://127.0.0.1:{a}", type: vllm, model_name: m}
  - {name: b, url: "http://127.0.0.1:{b}", type: vllm, model_name: m}
defaults: {fallback_chain: [a, b]}
"""
PINNING = "  kv_pinning: {enabled: true}\n  queue_aware_routing: true\n  queue_scrape_interval: 1s\n"
SIM = ["--model", "m", "--prefill-tps", "50000", "--decode-tps", "500"]


@pytest.fixture(params=["pin", "predicted_ttft"])
def running(request: pytest.FixtureRequest) -> Iterator[Stack]:
    """A stack for each policy."""
    extra = PINNING + f"  balancing: {request.param}\n"
    with stack(CONFIG, {"a": SIM, "b": SIM}, server_extra=extra) as started:
        yield started


async def converse(running: Stack, name: str, turns: int) -> list[tuple[str, str]]:
    """Backend and pin header of each turn of one conversation with a long start."""
    told = []
    messages: list[dict[str, Any]] = [{"role": "system", "content": f"{name} knows all. " * 600}]
    async with http() as session:
        for number in range(turns):
            messages.append({"role": "user", "content": f"{name} {number}"})
            body = {"model": "m", "messages": messages, "max_tokens": 4, "stream": number % 2 == 0}
            async with session.post(running.url + CHAT, json=body) as answer:
                assert answer.status == 200
                await answer.read()
                told.append((answer.headers["x-kronaxis-backend"], answer.headers["x-kronaxis-kv-pin"]))
            messages.append({"role": "assistant", "content": "so"})
            # A plain answer is settled by access log, within a moment of its end.
            await asyncio.to_thread(wait_until, lambda: running.in_flight() == 0, "the turn to be settled")
    return told


async def test_each_conversation_stays_on_its_backend_and_hits_the_engines_cache(running: Stack) -> None:
    """The first turn is a miss, every other one a hit on the same backend; the engine reports cached tokens."""
    for name in ("ann", "bob", "cid"):
        told = await converse(running, name, 4)
        assert [pin for _, pin in told] == ["MISS", "HIT", "HIT", "HIT"]
        assert len({backend for backend, _ in told}) == 1
    assert running.metric("kronaxis_router_kv_pin_hits_total") == 9
    assert running.metric("kronaxis_router_kv_pin_misses_total") >= 3
    predicted = running.metric("kronaxis_router_kv_predicted_tokens_total")
    cached = running.metric("kronaxis_router_kv_cached_tokens_total")
    assert 0.8 < cached / predicted < 1.25
    assert running.metric("kronaxis_router_kv_pin_entries") > 3


async def test_a_restarted_engine_has_no_pins_and_shows_its_queue(running: Stack) -> None:
    """The scraper sees the new start time; queue gauges are those of the engine."""
    pinned = (await converse(running, "dee", 2))[-1][0]
    wait_until(lambda: running.metric("kronaxis_router_backend_scrape_age_seconds", backend=pinned) > 0, "a scrape")
    entries = running.metric("kronaxis_router_kv_pin_hits_total")
    running.sims[pinned].kill()
    running.start_sim(pinned, *SIM)
    restarted_at = time.monotonic()
    wait_until(
        lambda: (
            running.metric("kronaxis_router_backend_scrape_age_seconds", backend=pinned)
            < time.monotonic() - restarted_at
        ),
        "a scrape of the new engine",
        20.0,
    )
    wait_until(lambda: running.metric("kronaxis_router_backend_healthy") == 2, "both up", 20.0)
    told = await converse(running, "dee", 1)
    assert told[0][1] == "MISS"
    assert running.metric("kronaxis_router_kv_pin_hits_total") == entries
