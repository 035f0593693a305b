"""Two routers on one server: what they hear of each other, and what becomes of it when the server dies."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import pytest
from redis.asyncio import Redis

from router_ext.model.shared import CircuitChanged, PrefixServed, SharedEvent
from router_ext.shared.bus import RedisBus
from tests.contract.kinds import POLL_S
from tests.fakes.telemetry import RecordingTelemetry
from tests.fakes.valkey_server import ValkeyServer, valkey_server

DEADLINE_S = 10.0
OPENED = CircuitChanged("a", "http://a:8000", is_open=True)
SERVED = PrefixServed("a", "http://a:8000", "m", ((bytes(range(16)), 2048),))


@dataclass(slots=True)
class Router:
    """One end: what it heard, and what its bus told."""

    bus: RedisBus
    telemetry: RecordingTelemetry
    heard: list[SharedEvent] = field(default_factory=list)

    async def until_heard(self, *events: SharedEvent) -> None:
        """Returns when exactly these have come."""
        await until(lambda: len(self.heard) >= len(events))
        assert self.heard == [*events]


async def until(condition: Callable[[], bool]) -> None:
    """Polls until it holds."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - what is kept has no event of its own
            await asyncio.sleep(POLL_S)


@asynccontextmanager
async def router(server: ValkeyServer, sender: str, prefix: str) -> AsyncIterator[Router]:
    """A bus that runs, without waiting until it is connected."""
    telemetry = RecordingTelemetry()
    made = Router(RedisBus(server.url, telemetry, sender=sender, prefix=prefix), telemetry)
    running = asyncio.create_task(made.bus.run(made.heard.append))
    try:
        yield made
        assert not running.done()
    finally:
        running.cancel()
        await asyncio.wait((running,))


@asynccontextmanager
async def two(server: ValkeyServer) -> AsyncIterator[tuple[Router, Router]]:
    """Two ends that are connected."""
    prefix = secrets.token_hex(8)
    async with AsyncExitStack() as stack:
        one, other = [await stack.enter_async_context(router(server, name, prefix)) for name in ("one", "other")]
        await until(lambda: one.telemetry.connections == other.telemetry.connections == [True])
        yield one, other


@pytest.fixture
def own_server() -> Iterator[ValkeyServer]:
    """A server that the test may kill."""
    with valkey_server() as running:
        yield running


async def test_each_hears_the_other_in_order_and_never_itself(server: ValkeyServer) -> None:
    """Each event once, counted on both sides."""
    async with two(server) as (one, other):
        one.bus.publish(SERVED)
        one.bus.publish(OPENED)
        await other.until_heard(SERVED, OPENED)
        other.bus.publish(OPENED)
        await one.until_heard(OPENED)
        assert one.telemetry.events_published == ["prefix_served", "circuit_changed"]
        assert other.telemetry.events_received == ["prefix_served", "circuit_changed"]
        assert one.telemetry.events_received == ["circuit_changed"]


async def test_a_burst_of_events_arrives_whole(server: ValkeyServer) -> None:
    """As many as may wait, in several messages."""
    events = [CircuitChanged(f"b-{number}", "http://b:8000", is_open=True) for number in range(1024)]
    async with two(server) as (one, other):
        for event in events:
            one.bus.publish(event)
        await other.until_heard(*events)
        assert one.telemetry.events_dropped == []


async def test_routers_of_another_prefix_hear_nothing(server: ValkeyServer) -> None:
    """Two installations may share a server."""
    async with two(server) as (one, other), two(server) as (stranger, _):
        one.bus.publish(OPENED)
        await other.until_heard(OPENED)
        stranger.bus.publish(SERVED)
        other.bus.publish(OPENED)
        await one.until_heard(OPENED)
        assert stranger.heard == []


async def test_what_is_no_message_is_counted_and_changes_nothing(server: ValkeyServer) -> None:
    """Events that come after it arrive."""
    garbage = (b"", b"\xc1", b"hello", b"\x91" * 5000, b"x" * 1_000_000)
    async with two(server) as (one, other), Redis.from_url(server.url.reveal(), protocol=2) as hostile:
        for data in garbage:
            await hostile.publish(one.bus.channel, data)
        one.bus.publish(OPENED)
        await other.until_heard(OPENED)
        assert other.telemetry.events_received == ["unreadable"] * 5 + ["circuit_changed"]
        assert other.telemetry.connections == [True]


async def test_after_a_kill_and_a_restart_they_hear_each_other_again(own_server: ValkeyServer) -> None:
    """What is told meanwhile is dropped and counted; the connection's state is told once a change."""
    async with two(own_server) as (one, other):
        own_server.kill()
        await until(lambda: one.telemetry.connections == other.telemetry.connections == [True, False])
        one.bus.publish(SERVED)
        await until(lambda: one.telemetry.events_dropped == [1])
        await asyncio.to_thread(own_server.start)
        await until(lambda: one.telemetry.connections == other.telemetry.connections == [True, False, True])
        one.bus.publish(OPENED)
        await other.until_heard(OPENED)


async def test_a_silent_server_is_left_and_found_again(own_server: ValkeyServer) -> None:
    """It takes connections and answers nothing: that shows within seconds, whether there are events or not."""
    async with two(own_server) as (one, other):
        own_server.freeze()
        one.bus.publish(SERVED)
        await until(lambda: one.telemetry.connections == other.telemetry.connections == [True, False])
        own_server.thaw()
        await until(lambda: one.telemetry.connections[-1] and other.telemetry.connections[-1])
        other.bus.publish(OPENED)
        await one.until_heard(OPENED)


async def test_a_server_that_comes_late_is_found(own_server: ValkeyServer) -> None:
    """The router does not wait for it, and says once that it is not there."""
    own_server.kill()
    async with router(own_server, "one", "late") as one:
        await until(lambda: one.telemetry.connections == [False])
        await asyncio.to_thread(own_server.start)
        await until(lambda: one.telemetry.connections == [False, True])


async def test_a_bug_in_what_hears_an_event_ends_the_run(own_server: ValkeyServer) -> None:
    """Who supervises the bus counts it and runs it anew; both connections are closed."""

    def broken(event: SharedEvent) -> None:
        raise KeyError(event)

    telemetry = RecordingTelemetry()
    bus = RedisBus(own_server.url, telemetry, sender="broken", prefix="p")
    async with router(own_server, "one", "p") as one:
        running = asyncio.create_task(bus.run(broken))
        await until(lambda: one.telemetry.connections == telemetry.connections == [True])
        one.bus.publish(OPENED)
        with pytest.raises(ExceptionGroup) as group:
            await running
        assert group.group_contains(KeyError)
        assert telemetry.connections == [True, False]
