"""What the tools stand on: one request of the admin API, wherever the router is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

DEADLINE_S: Final = 10.0
"""An answer that takes longer does not come."""

SLOW: Final = "What was asked may be done yet: look before you ask again."

MAX_ANSWER_BYTES: Final = 32 * 2**20
"""Largest answer that is read. 1,000 sessions are 0.2 MB."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer of the admin API. ``body`` is what its JSON holds."""

    status: int
    body: Any


class AwayError(Exception):
    """There is no answer of a router. The message says what to do; it quotes no token."""


class Admin(Protocol):
    """The admin API of one router."""

    async def call(self, method: str, path: str, query: Mapping[str, str], body: Any | None) -> Reply:
        """One request. ``path`` is percent-encoded; ``body`` is JSON, None for none. Raises AwayError."""
        ...
