"""What was spent in the last hour, by service."""

from typing import Final

_BUCKET_S: Final = 60
_BUCKETS: Final = 60


class LastHour:
    """A rolling window of 3,600 s in 60 buckets: an amount counts for 3,540 to 3,600 s, to the end of its minute.

    ``now`` is seconds that never go back, from an arbitrary start.
    """

    def __init__(self) -> None:
        self._buckets: dict[int, dict[str, int]] = {}

    def add(self, service: str, micro_usd: int, now: float) -> None:
        """A call cost ``micro_usd`` (≥ 0)."""
        number = int(now // _BUCKET_S)
        if number not in self._buckets:
            self._forget(number)
        bucket = self._buckets.setdefault(number, {})
        bucket[service] = bucket.get(service, 0) + micro_usd

    def totals(self, now: float) -> dict[str, int]:
        """Micro-dollars by service; none for services without calls."""
        self._forget(int(now // _BUCKET_S))
        totals: dict[str, int] = {}
        for bucket in self._buckets.values():
            for service, micro_usd in bucket.items():
                totals[service] = totals.get(service, 0) + micro_usd
        return totals

    def _forget(self, number: int) -> None:
        """Drops the buckets that are over when ``number`` begins."""
        for old in [key for key in self._buckets if key <= number - _BUCKETS]:
            del self._buckets[old]
