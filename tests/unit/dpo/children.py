"""Processes that write lines: one to be killed, two whose disk is full.

``python -m tests.unit.dpo.children NAME FILE``
"""

import asyncio
import json
import resource
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from router_ext.clock import SystemClock
from router_ext.dpo.writer import JsonLinesWriter
from tests.fakes.lines import RecordedWriter, numbered

LINE_BYTES: Final = 1000
FULL_AT: Final = 3500
"""Where the disk of ``full`` is full: in the fourth of its lines."""


async def write_until_killed(path: Path) -> None:
    """Lines of 1 to 300 KB as fast as they are written, in files of 1 MB; says when the first are there."""
    told = RecordedWriter()
    writer = JsonLinesWriter(path, 1_000_000, 1000, told, SystemClock())
    task = asyncio.create_task(writer.run())
    number = seen = 0
    while not task.done():
        # What is dropped keeps its number, which shows that nothing is written twice or in another order.
        writer.offer(numbered(number, 1000 + number * 7919 % 300_000))
        number += 1
        if told.written > seen:
            seen = told.written
            print(seen, flush=True)
        await asyncio.sleep(0)


async def write_to_a_full_disk(path: Path) -> None:
    """A limit for the size of files stands in for the disk: a write across it is short, the next one fails. Prints what
    was told: while it is full, and after room was made.
    """
    told = RecordedWriter()
    writer = JsonLinesWriter(path, 1_000_000, 10, told, SystemClock())
    task = asyncio.create_task(writer.run())
    _limit(FULL_AT)
    for number in range(6):
        await _written_or_dropped(writer, told, number)
    _print(told)
    _limit(resource.RLIM_INFINITY)
    await _written_or_dropped(writer, told, 6)
    _print(told)
    await writer.close()
    await task


async def write_a_batch_to_a_full_disk(path: Path) -> None:
    """The same with six lines that wait already, and are written by one call."""
    told = RecordedWriter()
    writer = JsonLinesWriter(path, 1_000_000, 10, told, SystemClock())
    for number in range(6):
        writer.offer(numbered(number, LINE_BYTES - 1))
    _limit(FULL_AT)
    await writer.close()
    _limit(resource.RLIM_INFINITY)
    _print(told)


async def _written_or_dropped(writer: JsonLinesWriter, told: RecordedWriter, number: int) -> None:
    writer.offer(numbered(number, LINE_BYTES - 1))
    while told.written + told.dropped.get("disk", 0) <= number:  # noqa: ASYNC110 - what is told has no event
        await asyncio.sleep(0.001)


def _limit(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def _print(told: RecordedWriter) -> None:
    print(json.dumps([told.written, told.dropped, told.told]), flush=True)


CHILDREN: Final[dict[str, Callable[[Path], Awaitable[None]]]] = {
    "killed": write_until_killed,
    "full": write_to_a_full_disk,
    "full-batch": write_a_batch_to_a_full_disk,
}

if __name__ == "__main__":

    async def _main() -> None:
        await CHILDREN[sys.argv[1]](Path(sys.argv[2]))

    asyncio.run(_main())
