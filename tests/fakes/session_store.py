"""A session store in a dictionary, which can go away."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from router_ext.model.session import Session, SessionMeta, Turn
from router_ext.ports import SessionStoreError


@dataclass(slots=True)
class FakeSessionStore:
    """Implements ``ports.SessionStore`` without any limit. While ``away`` every call raises, while ``read_only`` those
    that change something do.
    """

    sessions: dict[str, Session] = field(default_factory=dict)
    away: bool = False
    read_only: bool = False

    async def create(self, session_id: str, owner: str, turn: Turn, now_s: float) -> None:
        """Keeps the first turn."""
        self._reach(writes=True)
        meta = SessionMeta(session_id, owner, now_s, now_s, 1, _tokens_after(turn, 0), turn.bytes)
        self.sessions[session_id] = Session(meta, turn.messages)

    async def load(self, session_id: str, owner: str, now_s: float) -> Session | None:
        """The owner's session, which is used now."""
        self._reach()
        session = self._owned(session_id, owner)
        if session is None:
            return None
        return self._kept(replace(session, meta=replace(session.meta, used_s=now_s)))

    async def peek(self, session_id: str, owner: str, now_s: float) -> Session | None:
        """The owner's session as it is."""
        self._reach()
        return self._owned(session_id, owner)

    async def append(self, session_id: str, owner: str, turn: Turn, now_s: float) -> bool:
        """Adds the turn to the owner's session."""
        self._reach(writes=True)
        session = self._owned(session_id, owner)
        if session is None:
            return False
        meta = replace(
            session.meta,
            used_s=now_s,
            turns=session.meta.turns + 1,
            tokens=_tokens_after(turn, session.meta.tokens),
            bytes=session.meta.bytes + turn.bytes,
        )
        self._kept(Session(meta, session.messages + turn.messages))
        return True

    async def delete(self, session_id: str, owner: str | None = None) -> bool:
        """Destroys the session, of any owner where none is given."""
        self._reach(writes=True)
        session = self.sessions.get(session_id)
        if session is None or owner not in (None, session.meta.owner):
            return False
        del self.sessions[session_id]
        return True

    async def holds(self, session_id: str) -> bool:
        """Of any owner."""
        self._reach()
        return session_id in self.sessions

    async def listed(self, limit: int) -> Sequence[SessionMeta]:
        """The last used first."""
        self._reach()
        metas = (session.meta for session in self.sessions.values())
        return sorted(metas, key=lambda meta: -meta.used_s)[:limit]

    async def count(self) -> int:
        """All that are kept."""
        self._reach()
        return len(self.sessions)

    def _reach(self, *, writes: bool = False) -> None:
        if self.away or (writes and self.read_only):
            raise SessionStoreError

    def _owned(self, session_id: str, owner: str) -> Session | None:
        session = self.sessions.get(session_id)
        return session if session is not None and session.meta.owner == owner else None

    def _kept(self, session: Session) -> Session:
        self.sessions[session.meta.id] = session
        return session


def _tokens_after(turn: Turn, before: int) -> int:
    return turn.tokens if turn.tokens is not None else before + turn.estimated_tokens
