"""Two routers, each with an Envoy of its own, over the same backends and one server of Redis' protocol."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from tests.envoy.rig import wait_until
from tests.envoy.stack import CHAT, Stack, chat, http, stack
from tests.envoy.test_sessions import CREATE, turn
from tests.fakes.valkey_server import ValkeyServer, valkey_server

BREAKER = "circuit_breaker: {error_threshold: 3, window_seconds: 10s}"
BACKENDS = f"""
backends:
  - {{name: a, url: "http://127.0.0.1:{{a}}", type: vllm, model_name: m, {BREAKER}}}
  - {{name: b, url: "http://127.0.0.1:{{b}}", type: vllm, model_name: m, {BREAKER}}}
defaults: {{fallback_chain: [a, b]}}
"""
SHARED = """
  kv_pinning: {{enabled: true}}
  queue_aware_routing: true
  shared_state: redis
  sessions: {{enabled: true, store: redis, redis_url: '{url}'}}
"""
SIMS: dict[str, Sequence[str]] = {"a": ["--model", "m"], "b": ["--model", "m"]}
LONG = "All work and no play makes a dull router. " * 100
CONNECTED = "kronaxis_router_shared_state_connected"
RECEIVED = "kronaxis_router_shared_state_received_total"
CIRCUIT = "kronaxis_router_circuit_open"


@dataclass(frozen=True, slots=True)
class Replicas:
    """Both stacks, of which the first one owns the simulated backends, and their server."""

    one: Stack
    other: Stack
    server: ValkeyServer

    def await_connected(self) -> None:
        """Waits until each can reach the other."""
        for running in (self.one, self.other):
            await_metric(running, CONNECTED, 1)


def await_metric(running: Stack, name: str, value: float) -> None:
    """Waits until a metric has this value."""
    wait_until(lambda: running.metric(name) == value, f"{name} to be {value}")


@pytest.fixture(scope="module")
def started() -> Iterator[Replicas]:
    """Two replicas for all tests."""
    with valkey_server() as server:
        extra = SHARED.format(url=server.url.reveal())
        with (
            stack(BACKENDS, SIMS, server_extra=extra) as one,
            stack(BACKENDS, {}, server_extra=extra, sim_ports=one.sim_ports) as other,
        ):
            yield Replicas(one, other, server)


@pytest.fixture
def replicas(started: Replicas) -> Iterator[Replicas]:
    """The replicas with healthy backends before and after."""
    started.await_connected()
    yield started
    for name in SIMS:
        started.one.sim_faults(name)
    for running in (started.one, started.other):
        await_metric(running, CIRCUIT, 0)
        await_metric(running, "kronaxis_router_backend_healthy", 2)


async def told_to(listener: Stack, before: float) -> None:
    """Waits until the listener has heard of one more prompt."""
    await asyncio.to_thread(
        wait_until, lambda: listener.metric(RECEIVED, event="prefix_served") > before, "the event to arrive"
    )


async def test_a_session_goes_on_at_the_other_router_on_the_same_backend(replicas: Replicas) -> None:
    """Every turn at the router that did not serve the last one: a hit on the backend whose cache holds it."""
    speaker, listener = replicas.one, replicas.other
    heard = listener.metric(RECEIVED, event="prefix_served")
    status, first, _ = await turn(speaker, LONG, CREATE)
    assert status == 200
    session = {"x-kronaxis-session-id": first["x-kronaxis-session-id"]}
    for number in range(6):
        await told_to(listener, heard)
        speaker, listener = listener, speaker
        heard = listener.metric(RECEIVED, event="prefix_served")
        status, headers, _ = await turn(speaker, f"turn {number}", session, stream=number % 2 == 0)
        assert (status, headers["x-kronaxis-kv-pin"]) == (200, "HIT")
        assert headers["x-kronaxis-backend"] == first["x-kronaxis-backend"]


async def fail_until_open(running: Stack, name: str) -> None:
    """Different prompts until the backend has failed often enough; they are answered by the other backend."""
    number = 0
    async with asyncio.timeout(20.0), http() as session:
        while running.metric(CIRCUIT, backend=name) == 0:
            number += 1
            body = chat("m", f"trouble {number}", max_tokens=1)
            async with session.post(running.url + CHAT, json=body) as answer:
                assert answer.status == 200
                await answer.read()


async def test_a_breaker_that_trips_at_one_router_is_open_at_the_other_within_a_second(replicas: Replicas) -> None:
    """It never sent a request there; and when the backend is well again both close."""
    replicas.one.sim_faults("a", status=500, health_status=500)
    await fail_until_open(replicas.one, "a")
    opened_at = time.monotonic()
    await asyncio.to_thread(
        wait_until, lambda: replicas.other.metric(CIRCUIT, backend="a") == 1, "the other breaker to open", 1.0
    )
    assert time.monotonic() - opened_at < 1.0
    assert replicas.other.metric("kronaxis_router_failovers_total", **{"from": "a"}) == 0
    status, headers, _ = await turn(replicas.other, "who serves this?", {})
    assert (status, headers["x-kronaxis-backend"]) == (200, "b")


async def test_a_server_that_dies_costs_no_plain_request_and_comes_back(replicas: Replicas) -> None:
    """Sessions are refused meanwhile; afterwards they work, and the routers hear each other again."""
    replicas.server.kill()
    for running in (replicas.one, replicas.other):
        plain = await asyncio.gather(*(turn(running, f"{LONG} {n}", {}, stream=n % 2 == 0) for n in range(20)))
        assert {status for status, _, _ in plain} == {200}
        assert (await turn(running, "no store", CREATE))[0] == 503
        await asyncio.to_thread(await_metric, running, CONNECTED, 0)
    dropped = "kronaxis_router_shared_state_dropped_total"
    await asyncio.to_thread(wait_until, lambda: replicas.one.metric(dropped) > 0, "events to be dropped")
    await asyncio.to_thread(replicas.server.start)
    await asyncio.to_thread(replicas.await_connected)
    await test_a_session_goes_on_at_the_other_router_on_the_same_backend(replicas)
