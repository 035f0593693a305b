"""Writes the events of one streamed answer."""

from aiohttp import web

HEADERS = {"Content-Type": "text/event-stream; charset=utf-8", "Server": "uvicorn", "Vary": "Origin"}


class EventLimit(Exception):  # noqa: N818 - a planned end, not an error
    """The fault in force lets no further event through."""


class EventWriter:
    """One chunk an event, as vLLM does; in ``batch`` mode events wait for ``flush`` and share a chunk.

    With a ``limit`` the stream breaks after that many events.
    """

    def __init__(self, response: web.StreamResponse, limit: int | None, *, batch: bool) -> None:
        self._response = response
        self._left = limit
        self._batch = batch
        self._pending: list[bytes] = []

    async def send(self, events: list[bytes]) -> None:
        """Write events in order. Raises EventLimit once the limit is used up; what it allows is written before."""
        allowed = events if self._left is None else events[: self._left]
        if self._batch:
            self._pending += allowed
        else:
            for event in allowed:
                await self._response.write(event)
        if self._left is not None:
            self._left -= len(allowed)
            if self._left == 0:
                await self.flush()
                raise EventLimit

    async def flush(self) -> None:
        """Write what waits."""
        if self._pending:
            pending, self._pending = self._pending, []
            await self._response.write(b"".join(pending))
