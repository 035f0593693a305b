"""Calls of the session store are measured, and otherwise what they are without it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from router_ext.engine.session_calls import TimedStore
from router_ext.model.session import Turn
from router_ext.ports import SessionStore, SessionStoreError
from tests.fakes.clock import FakeClock
from tests.fakes.session_store import FakeSessionStore
from tests.fakes.telemetry import RecordingTelemetry

ID = "sess_00000000-0000-4000-8000-000000000001"
TURN = Turn((b'{"role":"user"}',), 7)

Call = Callable[[SessionStore], Awaitable[object]]

CALLS: dict[str, Call] = {
    "create": lambda store: store.create(ID, "me", TURN, 1.0),
    "load": lambda store: store.load(ID, "me", 2.0),
    "append": lambda store: store.append(ID, "me", TURN, 3.0),
    "list": lambda store: store.listed(1),
    "count": lambda store: store.count(),
    "delete": lambda store: store.delete(ID, "me"),
}


async def test_a_measured_store_gives_what_the_store_gives() -> None:
    """Every call reaches it with the same arguments, and its answer comes back."""
    measured = TimedStore(FakeSessionStore(), RecordingTelemetry(), FakeClock())
    plain = FakeSessionStore()
    for call in CALLS.values():
        assert await call(measured) == await call(plain)
    assert await measured.delete(ID) is False


@pytest.mark.parametrize("operation", CALLS)
async def test_each_call_is_timed_under_its_name(operation: str) -> None:
    """In seconds of the monotonic clock."""
    telemetry = RecordingTelemetry()
    await CALLS[operation](TimedStore(FakeSessionStore(), telemetry, FakeClock(step_s=0.25)))
    assert telemetry.store_calls == [(operation, 0.25, True)]


@pytest.mark.parametrize("operation", CALLS)
async def test_a_call_without_an_answer_is_timed_and_told_and_still_raises(operation: str) -> None:
    """The caller decides what becomes of the request."""
    telemetry = RecordingTelemetry()
    store = TimedStore(FakeSessionStore(away=True), telemetry, FakeClock(step_s=0.5))
    with pytest.raises(SessionStoreError):
        await CALLS[operation](store)
    assert telemetry.store_calls == [(operation, 0.5, False)]


class SilentStore(FakeSessionStore):
    """Never answers how many there are."""

    async def count(self) -> int:
        """Waits for ever."""
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_call_that_is_given_up_counts_as_one_without_an_answer() -> None:
    """A store that hangs until somebody's patience ends must show."""
    telemetry = RecordingTelemetry()
    call = asyncio.create_task(TimedStore(SilentStore(), telemetry, FakeClock(step_s=0.5)).count())
    await asyncio.wait([call], timeout=0)
    call.cancel()
    await asyncio.wait([call])
    assert call.cancelled()
    assert telemetry.store_calls == [("count", 0.5, False)]
