"""MET-01: a client must not mint series."""

import asyncio

from router_ext.engine.engine import Engine
from router_ext.model.snapshot import Health
from tests.fakes.clock import FakeClock
from tests.fakes.dispatcher import CannedDispatcher
from tests.fakes.domain import backend, head, record, router
from tests.fakes.recorder import RecorderRig
from tests.fakes.session_store import FakeSessionStore


async def _served(engine: Engine, numbers: range) -> None:
    """One exchange a number, each with names of its own in every place that a client fills."""
    for number in numbers:
        body = b'{"model":"junk-%d","user":"u%d","messages":[]}' % (number, number)
        await engine.plan(head(x_kronaxis_service=f"s{number}", x_kronaxis_personaid=f"p{number}"), body)
        engine.settle(record(engine.recent[-1].id, 200 + number % 400))
        await engine.plan(head(x_kronaxis_service=f"s{number}"), b"{")


def test_the_number_of_series_does_not_grow_with_the_names_in_requests() -> None:
    """Services, models, users, personas and statuses: everything that is not configured is ``other``."""
    rig = RecorderRig()
    engine = Engine(router(backend()), rig.recorder, FakeClock(), CannedDispatcher(), FakeSessionStore(), id_prefix="t")
    engine.set_health("a", Health.HEALTHY)
    asyncio.run(_served(engine, range(400)))
    before = rig.count_series()
    asyncio.run(_served(engine, range(400, 2000)))
    assert rig.count_series() == before
    assert rig.series("requests_total") == {("a", "default", "other"): 2000.0}
