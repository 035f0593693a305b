"""A session store whose calls are measured."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from router_ext.model.session import Session, SessionMeta, Turn
from router_ext.ports import Clock, SessionStore, Telemetry


class TimedStore:
    """Implements ``ports.SessionStore`` by another one. Telemetry is told of every call but ``peek`` and ``holds``, and
    of those that raise or are cancelled as calls without an answer.
    """

    def __init__(self, store: SessionStore, telemetry: Telemetry, clock: Clock) -> None:
        self._store = store
        self._telemetry = telemetry
        self._clock = clock

    @contextmanager
    def _timed(self, operation: str) -> Iterator[None]:
        started, ok = self._clock.monotonic(), False
        try:
            yield
            ok = True
        finally:
            self._telemetry.session_store_call(operation, self._clock.monotonic() - started, ok=ok)

    async def create(self, session_id: str, owner: str, turn: Turn, now_s: float) -> None:
        """Operation ``create``."""
        with self._timed("create"):
            await self._store.create(session_id, owner, turn, now_s)

    async def load(self, session_id: str, owner: str, now_s: float) -> Session | None:
        """Operation ``load``."""
        with self._timed("load"):
            return await self._store.load(session_id, owner, now_s)

    async def peek(self, session_id: str, owner: str, now_s: float) -> Session | None:
        """Not told of: no request needs it."""
        return await self._store.peek(session_id, owner, now_s)

    async def append(self, session_id: str, owner: str, turn: Turn, now_s: float) -> bool:
        """Operation ``append``."""
        with self._timed("append"):
            return await self._store.append(session_id, owner, turn, now_s)

    async def delete(self, session_id: str, owner: str | None = None) -> bool:
        """Operation ``delete``."""
        with self._timed("delete"):
            return await self._store.delete(session_id, owner)

    async def holds(self, session_id: str) -> bool:
        """Not told of: no request needs it."""
        return await self._store.holds(session_id)

    async def listed(self, limit: int) -> Sequence[SessionMeta]:
        """Operation ``list``."""
        with self._timed("list"):
            return await self._store.listed(limit)

    async def count(self) -> int:
        """Operation ``count``."""
        with self._timed("count"):
            return await self._store.count()
