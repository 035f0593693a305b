"""Probes and circuit breakers: who is asked when, and which result counts."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from router_ext.config.sections import Server
from router_ext.dispatch.egress import EgressAnswer
from router_ext.model.backend import Backend, CircuitBreaker
from router_ext.model.snapshot import BackendState, Health
from router_ext.scrape.health import HealthChecks
from router_ext.stream.effects import Forward
from tests.fakes.domain import backend, head, record, router
from tests.fakes.rig import BODY, EngineRig

FRAGILE = replace(backend(), circuit_breaker=CircuitBreaker(1, 10.0))
CONFIG = replace(router(FRAGILE), server=Server(health_check_interval_s=30.0))


@dataclass
class Door:
    """A backend's health page: ``status`` is what it answers, and with ``held`` a probe waits until it is let go."""

    status: int = 200
    asked: int = 0
    held: asyncio.Event | None = None
    waiting: asyncio.Event = field(default_factory=asyncio.Event)

    async def get(self, _backend: Backend, _path: str, _timeout_s: float) -> EgressAnswer:
        """See ``Prober``."""
        self.asked += 1
        status = self.status
        if self.held is not None:
            self.waiting.set()
            await self.held.wait()
        return EgressAnswer(status, (), b"")


@asynccontextmanager
async def probing(door: Door) -> AsyncIterator[EngineRig]:
    """Health checks at work on one backend, after their first round."""
    rig = EngineRig(CONFIG)
    checks = HealthChecks(rig.engine, door, rig.clock, rig.telemetry)
    task = asyncio.create_task(checks.run())
    await asyncio.wait_for(checks.first_round(), 5.0)
    yield rig
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def until(condition: Callable[[], bool]) -> None:
    """Waits for the loop to bring a condition about."""
    async with asyncio.timeout(5.0):
        while not condition():  # noqa: ASYNC110 - the state has no event of its own
            await asyncio.sleep(0)


async def trip(rig: EngineRig) -> None:
    """One failed request, which opens the breaker."""
    plan = await rig.engine.plan(head(), BODY)
    assert isinstance(plan, Forward), plan
    rig.engine.settle(record(plan.metadata["id"], 500))


def state(rig: EngineRig) -> BackendState:
    """The backend's state."""
    return rig.engine.pool["a"].state


async def test_a_breaker_that_opens_is_probed_at_once_and_closed_by_a_good_answer() -> None:
    """The interval is 30 s, and nobody waits for it."""
    door = Door()
    async with probing(door) as rig:
        await trip(rig)
        assert (state(rig).tripped, state(rig).health) == (True, Health.DOWN)
        await until(lambda: not state(rig).tripped)
        assert (door.asked, state(rig).health) == (2, Health.HEALTHY)
        assert rig.telemetry.circuits == [("a", True), ("a", False)]


async def test_a_bad_answer_leaves_it_open() -> None:
    """The backend stays down, and is probed again after a while."""
    door = Door()
    async with probing(door) as rig:
        door.status = 503
        await trip(rig)
        await until(lambda: door.asked == 2)
        assert state(rig).tripped
        door.status = 404
        await until(lambda: not state(rig).tripped)
        assert (door.asked, state(rig).health) == (3, Health.DEGRADED)


async def test_a_probe_that_began_before_the_breaker_opened_does_not_close_it() -> None:
    """Its good answer tells of the time before; the next probe decides."""
    door = Door()
    async with probing(door) as rig:
        door.held = asyncio.Event()
        await trip(rig)
        await door.waiting.wait()
        rig.engine.set_health("a", Health.HEALTHY, alive=True)
        await trip(rig)
        door.status, held, door.held = 503, door.held, None
        held.set()
        await until(lambda: door.asked == 3)
        assert state(rig).tripped
