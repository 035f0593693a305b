"""A ledger that is flushed by itself."""

import asyncio

import pytest

from router_ext.ledger import soon
from router_ext.ledger.soon import FlushedSoon
from router_ext.model.ledger import Key
from tests.fakes.ledger import TODAY, USAGE, FakeLedger, key


class Rig:
    """A ledger, and what was told of it."""

    def __init__(self) -> None:
        self.file = FakeLedger()
        self.told: list[str] = []
        self.ledger = FlushedSoon(self.file, self.told.append)

    def book(self, count: int = 1) -> None:
        """Calls of 10 micro-dollars each."""
        for _ in range(count):
            self.ledger.book(key(), USAGE, 10, estimated=False)


async def test_what_is_booked_in_one_tick_is_flushed_once() -> None:
    """After the tick, and again after the next one that books."""
    rig = Rig()
    rig.book(3)
    assert (rig.file.flushes, len(rig.file.waiting)) == (0, 3)
    await asyncio.sleep(0)
    assert (rig.file.flushes, len(rig.file.kept)) == (1, 3)
    await asyncio.sleep(0)
    rig.book()
    await asyncio.sleep(0)
    assert (rig.file.flushes, len(rig.file.kept), rig.told) == (2, 4, [])


async def test_who_cannot_wait_for_the_tick_flushes() -> None:
    """What is told of next is on file by then; the tick finds nothing left."""
    rig = Rig()
    rig.book(2)
    assert (rig.ledger.flush(), len(rig.file.kept)) == ("", 2)
    await asyncio.sleep(0)
    assert (rig.file.flushes, len(rig.file.kept)) == (2, 2)


async def test_an_error_is_told_once_and_so_is_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried again without anything new being booked, and not at each booking."""
    monkeypatch.setattr(soon, "FIRST_RETRY_S", 0.001)
    rig = Rig()
    rig.file.error = "SQLITE_FULL"
    rig.book()
    async with asyncio.timeout(10):
        while rig.file.flushes < 5:  # noqa: ASYNC110 - a flush has no event
            await asyncio.sleep(0.001)
    assert rig.told == ["SQLITE_FULL"]
    rig.file.error = ""
    async with asyncio.timeout(10):
        while not rig.file.kept:  # noqa: ASYNC110 - a flush has no event
            await asyncio.sleep(0.001)
    assert rig.told == ["SQLITE_FULL", ""]


async def test_a_failing_file_is_left_alone_for_a_while() -> None:
    """Its lock may be somebody's, its disk slow: requests go on meanwhile."""
    rig = Rig()
    rig.file.error = "SQLITE_BUSY"
    for _ in range(10):
        rig.book()
        await asyncio.sleep(0)
    assert (rig.file.flushes, len(rig.file.waiting)) == (1, 10)
    assert (rig.ledger.flush(), rig.file.flushes) == ("SQLITE_BUSY", 1)
    rig.ledger.stop()
    assert rig.file.flushes == 2


async def test_another_error_is_told_too() -> None:
    """What an operator has to do changed."""
    rig = Rig()
    for rig.file.error in ("SQLITE_BUSY", "SQLITE_BUSY", "SQLITE_FULL"):
        rig.ledger.flush()
    assert rig.told == ["SQLITE_BUSY", "SQLITE_FULL"]


async def test_a_stop_flushes_for_the_last_time() -> None:
    """What was booked before is kept, and nothing is due any more."""
    rig = Rig()
    rig.book()
    rig.ledger.stop()
    assert (rig.file.flushes, len(rig.file.kept)) == (1, 1)
    await asyncio.sleep(0)
    assert rig.file.flushes == 1


async def test_sums_are_those_of_the_ledger() -> None:
    """Whether flushed or not."""
    rig = Rig()
    rig.book(2)
    assert rig.ledger.spent(TODAY) == {"shop": 20}


async def test_each_booking_is_told_by_its_key() -> None:
    """After it counts in every sum."""
    changed: list[tuple[Key, dict[str, int]]] = []
    file = FakeLedger()
    ledger = FlushedSoon(file, lambda _: None, lambda of: changed.append((of, file.spent(TODAY))))
    for service in ("shop", "blog"):
        ledger.book(key(service), USAGE, 10, estimated=False)
    assert changed == [(key("shop"), {"shop": 10}), (key("blog"), {"shop": 10, "blog": 10})]
    ledger.stop()
