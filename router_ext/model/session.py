"""Conversations that the router keeps: what a store holds, and what a turn adds."""

import re
from typing import Final

from msgspec import Struct

SESSION_ID: Final = re.compile(r"sess_[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
"""Form of a session's id: ``sess_`` and a random UUID (version 4, 122 random bits), in lower case."""


class SessionMeta(Struct, frozen=True):
    """What is known of a session beside its messages.

    ``owner`` is a digest of the creator's credential and service, in hexadecimal. Times are seconds since the epoch.
    ``turns`` (≥ 1) counts answered requests, ``tokens`` (≥ 0) the context that the next turn continues, ``bytes`` the
    size of all messages as JSON.
    """

    id: str
    owner: str
    created_s: float
    used_s: float
    turns: int = 1
    tokens: int = 0
    bytes: int = 0


class Session(Struct, frozen=True):
    """A stored conversation: each message as the JSON it was sent or answered as, oldest first."""

    meta: SessionMeta
    messages: tuple[bytes, ...]


class Turn(Struct, frozen=True):
    """What one answered request adds: its new messages and the answer. ``tokens`` is the whole context afterwards,
    None where it is not known: then the store adds ``estimated_tokens``, which is for the new messages alone.
    """

    messages: tuple[bytes, ...]
    tokens: int | None = None
    estimated_tokens: int = 0

    @property
    def bytes(self) -> int:
        """The size of its messages."""
        return sum(map(len, self.messages))
