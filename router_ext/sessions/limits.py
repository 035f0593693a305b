"""What bounds a session store, and why a session left it."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """``ttl_s`` (> 0): how long a session lives after its last use. ``max_sessions`` (≥ 1) and ``max_bytes`` (≥ 1) hold
    for the whole store; the bytes are those of the messages as JSON, the sum of ``SessionMeta.bytes``.
    """

    ttl_s: float
    max_sessions: int
    max_bytes: int


class Eviction(StrEnum):
    """Why a session is gone that nobody destroyed."""

    TTL = "ttl"
    MAX_SESSIONS = "max_sessions"
    MAX_BYTES = "max_bytes"
    LOST = "lost"
    """The server gave up the session or a part of it, as Redis does at its own ``maxmemory``."""
