"""What keeps failover from making an outage worse: a budget of retries, and of memory for requests."""

from typing import Final

RETRY_SHARE: Final = 0.2
"""Share of the open requests that may be retried at a time, as Envoy's own retry budgets have it by default."""

RETRY_FLOOR: Final = 10
"""Retries that are always allowed: a router with few requests open loses a backend, too."""

MAX_KEPT_BYTES: Final = 256 << 20
"""Memory for the bodies of requests whose answer has not begun. Beyond it new requests cannot fail over."""


class RetryBudget:
    """Counts the requests that are being retried."""

    def __init__(self) -> None:
        self._used = 0

    def take(self, open_requests: int) -> bool:
        """Takes a place among the retries, if one is left with so many requests open."""
        if self._used >= max(RETRY_FLOOR, int(RETRY_SHARE * open_requests)):
            return False
        self._used += 1
        return True

    def give(self) -> None:
        """Gives a place back."""
        self._used -= 1


class KeptBytes:
    """Counts the bytes of kept requests."""

    def __init__(self, limit: int = MAX_KEPT_BYTES) -> None:
        self._limit = limit
        self._used = 0

    def take(self, size: int) -> bool:
        """Takes room for ``size`` bytes, if it is left."""
        if self._used + size > self._limit:
            return False
        self._used += size
        return True

    def give(self, size: int) -> None:
        """Gives room back."""
        self._used -= size
