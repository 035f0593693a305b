"""Prefix chains of conversations that were hashed before, so that a turn hashes what is new only.

An aid alone: what is not here is read anew, with the same result.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from router_ext.payload.prompt import PromptStart

MAX_BYTES: Final = 64 << 20
"""Messages that are remembered, in all. In a store in memory they are the very objects that it holds."""


class _Known(Struct, frozen=True):
    messages: tuple[bytes, ...]
    start: PromptStart
    size: int


class KnownPrompts:
    """The last conversations by session, least recently used first to go."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._bytes = 0

    def get(self, session_id: str, messages: Sequence[bytes]) -> PromptStart | None:
        """Where the chain over ``messages`` can go on from; None when it must begin at the first."""
        known = self._known.get(session_id)
        if known is None or known.messages != tuple(messages[: len(known.messages)]):
            return None
        self._known.move_to_end(session_id)
        return known.start

    def put(self, session_id: str, messages: tuple[bytes, ...], start: PromptStart) -> None:
        """Remembers the chain over exactly these messages."""
        self.drop(session_id)
        size = sum(map(len, messages))
        if start.turns != len(messages) or size > self._max_bytes:
            return
        self._known[session_id] = _Known(messages, start, size)
        self._bytes += size
        while self._bytes > self._max_bytes:
            self.drop(next(iter(self._known)))

    def drop(self, session_id: str) -> None:
        """Forgets a session."""
        known = self._known.pop(session_id, None)
        if known is not None:
            self._bytes -= known.size
