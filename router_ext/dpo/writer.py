"""Writes lines behind a bounded queue: whoever has a line never waits, and no disk can harm it."""

import asyncio
from collections import deque
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol

from router_ext.dpo.lines_file import Appended, LinesFile
from router_ext.ports import Clock

MAX_QUEUED_BYTES: Final = 64 << 20
"""Most that waits to be written: seconds of a slow disk, and a bound for memory."""

LINE_BYTES: Final = 128
"""What a line counts in the queue beside its bytes: about what its object takes."""

BATCH_BYTES: Final = 1 << 20
"""Least at which no more lines are added to a batch."""

DRAIN_S: Final = 5.0
"""How long ``close`` waits for the disk."""


class Dropped(StrEnum):
    """Why a line is not in the file: the queue was full, the disk failed, the line is longer than a file may be, or it
    came too late.
    """

    QUEUE_FULL = "queue_full"
    DISK = "disk"
    TOO_LONG = "too_long"
    CLOSED = "closed"


class WriterTelemetry(Protocol):
    """What became of lines. Called on the event loop; cheap, never raises."""

    def lines_written(self, count: int) -> None:
        """So many lines (≥ 1) are in the file."""
        ...

    def lines_dropped(self, reason: Dropped, count: int) -> None:
        """So many lines (≥ 1) were given up."""
        ...

    def writer_failing(self, path: Path, reason: Dropped, cause: str) -> None:
        """Lines are being dropped from now on: said once, until the writer has recovered. ``cause`` is the name of an
        ``errno`` for ``DISK``, else "".
        """
        ...

    def writer_recovered(self, path: Path, reason: Dropped) -> None:
        """Lines are written again; for ``QUEUE_FULL``: the queue is empty."""
        ...

    def torn_line_cut(self, path: Path, size_bytes: int) -> None:
        """The file ended within a line, of which so many bytes were cut off."""
        ...


class JsonLinesWriter:
    """Appends lines to ``path`` while ``run`` runs. Used from one event loop.

    No file is larger than ``max_file_bytes``. A full one is renamed to ``name-<UTC time>.jsonl``, of which
    ``max_files`` (≥ 1) are kept; see ``lines_file``. No two writers, in whatever process, may have the same path.
    """

    def __init__(
        self, path: Path, max_file_bytes: int, max_files: int, telemetry: WriterTelemetry, clock: Clock
    ) -> None:
        self._path = path
        self._max_line_bytes = max_file_bytes
        self._telemetry = telemetry
        self._file = LinesFile(path, max_file_bytes, max_files, clock.wall)
        self._disk = asyncio.Lock()
        self._lines: deque[bytes] = deque()
        self._queued_bytes = 0
        self._failing: set[Dropped] = set()
        self._wake = asyncio.Event()
        self._closing = False
        self._running: asyncio.Event | None = None

    def offer(self, line: bytes) -> bool:
        """Queues a line of JSON without its newline. False, and counted, when it is dropped. Never blocks."""
        whole = line + b"\n"
        reason = self._refusal(len(whole))
        if reason is not None:
            self._drop(reason, 1)
            return False
        self._lines.append(whole)
        self._queued_bytes += len(whole) + LINE_BYTES
        self._wake.set()
        return True

    def _refusal(self, size: int) -> Dropped | None:
        if self._closing:
            return Dropped.CLOSED
        if size > self._max_line_bytes:
            return Dropped.TOO_LONG
        return Dropped.QUEUE_FULL if self._queued_bytes + size + LINE_BYTES > MAX_QUEUED_BYTES else None

    async def run(self) -> None:
        """Cuts off what a crash left of a line, then writes what is offered, until ``close``."""
        self._running = ended = asyncio.Event()
        try:
            await asyncio.shield(self._write([]))
            while not self._closing or self._lines:
                await self._wake.wait()
                self._wake.clear()
                await self._drain()
        finally:
            ended.set()

    async def close(self) -> None:
        """Takes no more lines, and writes those that wait within ``DRAIN_S``; the rest is dropped. Also for a writer
        whose ``run`` was cancelled or never called.
        """
        self._closing = True
        self._wake.set()
        try:
            async with asyncio.timeout(DRAIN_S):
                if self._running is not None:
                    await self._running.wait()
                await self._drain()
                async with self._disk:
                    await asyncio.to_thread(self._file.close)
        except TimeoutError:
            self._drop(Dropped.CLOSED, len(self._lines))
            self._lines.clear()

    async def _drain(self) -> None:
        while self._lines:
            # A batch in a thread cannot be cancelled: it goes on, and says what became of it.
            await asyncio.shield(self._write(self._batch()))
        self._recover(Dropped.QUEUE_FULL)

    def _batch(self) -> list[bytes]:
        batch: list[bytes] = []
        size = 0
        while self._lines and size < BATCH_BYTES:
            batch.append(self._lines.popleft())
            size += len(batch[-1])
        self._queued_bytes -= size + LINE_BYTES * len(batch)
        return batch

    async def _write(self, batch: list[bytes]) -> None:
        async with self._disk:
            appended = await asyncio.to_thread(self._file.append, batch)
        self._tell(appended)

    def _tell(self, appended: Appended) -> None:
        if appended.torn_bytes:
            self._telemetry.torn_line_cut(self._path, appended.torn_bytes)
        if appended.written:
            self._telemetry.lines_written(appended.written)
        if appended.error:
            self._drop(Dropped.DISK, appended.dropped, appended.error)
        else:
            self._recover(Dropped.DISK)

    def _drop(self, reason: Dropped, count: int, cause: str = "") -> None:
        if reason in (Dropped.QUEUE_FULL, Dropped.DISK) and reason not in self._failing:
            self._failing.add(reason)
            self._telemetry.writer_failing(self._path, reason, cause)
        if count:
            self._telemetry.lines_dropped(reason, count)

    def _recover(self, reason: Dropped) -> None:
        if reason in self._failing:
            self._failing.remove(reason)
            self._telemetry.writer_recovered(self._path, reason)
