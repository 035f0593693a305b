"""Sessions in the memory of this process.

Messages are kept as the objects that came in and are given out, so a session costs little more than its bytes.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import islice

from msgspec.structs import replace

from router_ext.model.session import Session, SessionMeta, Turn
from router_ext.ports import SessionStoreError
from router_ext.sessions.limits import Eviction, StoreLimits


class _Kept:
    """A session, growing."""

    __slots__ = ("messages", "meta")

    def __init__(self, meta: SessionMeta, messages: list[bytes]) -> None:
        self.meta = meta
        self.messages = messages


class MemoryStore:
    """Implements ``ports.SessionStore`` for one process and one event loop; no call awaits anything.

    ``evicted`` is called once for each session that is given up, with an ``Eviction``. A session that alone is larger
    than ``max_bytes`` is given up itself, any other makes room at the expense of those used before it. ``create`` with
    an id that its owner has already starts anew, and raises SessionStoreError when the id is another owner's.
    """

    def __init__(self, limits: StoreLimits, evicted: Callable[[str], None]) -> None:
        self._limits = limits
        self._evicted = evicted
        self._sessions: OrderedDict[str, _Kept] = OrderedDict()
        self._bytes = 0

    async def create(self, session_id: str, owner: str, turn: Turn, now_s: float) -> None:
        """See ``ports.SessionStore``."""
        self.purge(now_s)
        known = self._sessions.get(session_id)
        if known is not None and known.meta.owner != owner:
            raise SessionStoreError("the new session's id is taken")
        self._remove(session_id)
        meta = SessionMeta(session_id, owner, now_s, now_s, 1, _tokens(0, turn), turn.bytes)
        kept = self._sessions[session_id] = _Kept(meta, list(turn.messages))
        self._bytes += meta.bytes
        self._make_room(kept)

    async def load(self, session_id: str, owner: str, now_s: float) -> Session | None:
        """See ``ports.SessionStore``."""
        kept = self._used(session_id, owner, now_s)
        return None if kept is None else Session(kept.meta, tuple(kept.messages))

    async def peek(self, session_id: str, owner: str, now_s: float) -> Session | None:
        """See ``ports.SessionStore``."""
        kept = self._sessions.get(session_id)
        if kept is None or kept.meta.owner != owner or self._is_over(kept, now_s):
            return None
        return Session(kept.meta, tuple(kept.messages))

    async def append(self, session_id: str, owner: str, turn: Turn, now_s: float) -> bool:
        """See ``ports.SessionStore``. False also when the session has outgrown ``max_bytes``, and is gone for it."""
        kept = self._used(session_id, owner, now_s)
        if kept is None:
            return False
        meta = kept.meta
        tokens, size = _tokens(meta.tokens, turn), meta.bytes + turn.bytes
        kept.meta = replace(meta, turns=meta.turns + 1, tokens=tokens, bytes=size)
        kept.messages += turn.messages
        self._bytes += turn.bytes
        return self._make_room(kept)

    async def delete(self, session_id: str, owner: str | None = None) -> bool:
        """See ``ports.SessionStore``."""
        kept = self._sessions.get(session_id)
        if kept is None or owner not in (None, kept.meta.owner):
            return False
        return self._remove(session_id)

    async def holds(self, session_id: str) -> bool:
        """See ``ports.SessionStore``. Knows what was there at the last call that had a time."""
        return session_id in self._sessions

    async def listed(self, limit: int) -> Sequence[SessionMeta]:
        """See ``ports.SessionStore``. Holds what was there at the last call that had a time."""
        return [kept.meta for kept in islice(reversed(self._sessions.values()), max(0, limit))]

    async def close(self) -> None:
        """Nothing is open."""

    async def count(self) -> int:
        """See ``ports.SessionStore``. Counts what was there at the last call that had a time."""
        return len(self._sessions)

    def purge(self, now_s: float) -> None:
        """Forgets expired sessions. Every call with a time does it first; call it where none may come for long."""
        while self._sessions and self._is_over(next(iter(self._sessions.values())), now_s):
            self._evict(next(iter(self._sessions)), Eviction.TTL)

    def _used(self, session_id: str, owner: str, now_s: float) -> _Kept | None:
        """The session, which is the most recently used one from now on."""
        self.purge(now_s)
        kept = self._sessions.get(session_id)
        if kept is None or kept.meta.owner != owner:
            return None
        if self._is_over(kept, now_s):  # Not the oldest by order of use when the wall clock was set back.
            self._evict(session_id, Eviction.TTL)
            return None
        kept.meta = replace(kept.meta, used_s=now_s)
        self._sessions.move_to_end(session_id)
        return kept

    def _is_over(self, kept: _Kept, now_s: float) -> bool:
        return now_s - kept.meta.used_s >= self._limits.ttl_s

    def _make_room(self, grown: _Kept) -> bool:
        """Keeps the limits after ``grown``, the most recently used session, became larger. False when it had to go."""
        if grown.meta.bytes > self._limits.max_bytes:
            self._evict(grown.meta.id, Eviction.MAX_BYTES)
            return False
        while len(self._sessions) > self._limits.max_sessions:
            self._evict(next(iter(self._sessions)), Eviction.MAX_SESSIONS)
        while self._bytes > self._limits.max_bytes:
            self._evict(next(iter(self._sessions)), Eviction.MAX_BYTES)
        return True

    def _evict(self, session_id: str, reason: Eviction) -> None:
        self._remove(session_id)
        self._evicted(reason)

    def _remove(self, session_id: str) -> bool:
        kept = self._sessions.pop(session_id, None)
        if kept is None:
            return False
        self._bytes -= kept.meta.bytes
        return True


def _tokens(before: int, turn: Turn) -> int:
    """The size of the context after ``turn``."""
    return before + turn.estimated_tokens if turn.tokens is None else turn.tokens
