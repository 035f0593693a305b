"""Lines that are made off the event loop and then written: what they are made of may be long."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from router_ext.dpo.writer import Dropped, JsonLinesWriter, WriterTelemetry

MAX_MAKING: Final = 64
"""Most lines of a file that are made at a time. Each holds on to a request or its answers."""


class LinesTelemetry(WriterTelemetry, Protocol):
    """What became of lines."""

    def line_unfit(self, reason: str) -> None:
        """What was offered is no line, for this reason."""
        ...

    def making_failed(self, error: BaseException) -> None:
        """A bug: the line is lost."""
        ...


class LinesInMaking:
    """Makes lines in threads for ``writer``. Used from one event loop."""

    def __init__(self, writer: JsonLinesWriter, telemetry: LinesTelemetry) -> None:
        self._writer = writer
        self._telemetry = telemetry
        self._making: set[asyncio.Task[None]] = set()

    def begin(self, make: Callable[[], bytes | str]) -> None:
        """Has ``make`` called in a thread. Its bytes are written; text says why there are none. Never blocks."""
        if len(self._making) >= MAX_MAKING:
            self._telemetry.lines_dropped(Dropped.QUEUE_FULL, 1)
            return
        task = asyncio.create_task(self._make(make), name="line")
        self._making.add(task)
        task.add_done_callback(self._made)

    async def run(self) -> None:
        """Writes until ``close``."""
        await self._writer.run()

    async def close(self) -> None:
        """Writes what was begun before."""
        if self._making:
            await asyncio.gather(*self._making, return_exceptions=True)
        await self._writer.close()

    async def _make(self, make: Callable[[], bytes | str]) -> None:
        made = await asyncio.to_thread(make)
        if isinstance(made, bytes):
            self._writer.offer(made)
        else:
            self._telemetry.line_unfit(made)

    def _made(self, task: asyncio.Task[None]) -> None:
        self._making.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._telemetry.making_failed(error)
