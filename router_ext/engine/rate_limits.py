"""Requests a second by service: a token bucket for each.

Each service that is not named has a bucket of its own with the rate of ``default``. The name is what the caller says;
buckets are bounded in number, and one that was let go begins anew, full.
"""

import math
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from router_ext.config.sections import DEFAULT_SERVICE, RateLimit
from router_ext.model.rejection import Reason, Rejection
from router_ext.model.request import Caller
from router_ext.ports import Clock, Telemetry

MAX_BUCKETS: Final = 10_000
"""Buckets kept: the least recently used one goes first. 4 MB with names of ordinary length."""


@dataclass(slots=True)
class _Bucket:
    """``level`` (0..burst) requests may come at once, as of ``at`` in monotonic seconds."""

    level: float
    at: float

    def level_at(self, now: float, rate: float, burst: float) -> float:
        """The level at a later time, filled with ``rate`` requests a second up to ``burst``."""
        return min(burst, self.level + (now - self.at) * rate)


class RateLimits:
    """The limits in force, and how much of them is left."""

    def __init__(self, telemetry: Telemetry, clock: Clock) -> None:
        self._telemetry = telemetry
        self._clock = clock
        self._limits: dict[str, RateLimit] = {}
        self._workers = 1
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def configure(self, limits: Iterable[RateLimit], workers: int) -> None:
        """Takes over a new configuration. Each of ``workers`` (≥ 1) has its share; what is in the buckets stays, as far
        as it is no more than the new burst.
        """
        self._limits = {limit.service: limit for limit in limits}
        self._workers = workers

    def take(self, caller: Caller) -> Rejection | None:
        """Counts one request; why it is refused, if it is. A refused request takes nothing."""
        share = self._share(caller.service)
        if share is None:
            return None
        rate, burst = share
        bucket = self._filled(caller.service, rate, burst)
        if bucket.level >= 1:
            bucket.level -= 1
            return None
        self._telemetry.rate_limited(caller)
        return _too_many(bucket.level, rate)

    def look(self, caller: Caller) -> Rejection | None:
        """Why a request would be refused now, if it would; nothing is counted."""
        share, bucket = self._share(caller.service), self._buckets.get(caller.service)
        if share is None or bucket is None:
            return None
        rate, burst = share
        level = bucket.level_at(self._clock.monotonic(), rate, burst)
        return None if level >= 1 else _too_many(level, rate)

    def _share(self, service: str) -> tuple[float, float] | None:
        """The rate a second and the burst (≥ 1) of a service in this process; None where it has no limit."""
        limit = self._limits.get(service) or self._limits.get(DEFAULT_SERVICE)
        if limit is None:
            return None
        return limit.requests_per_second / self._workers, max(1.0, limit.burst_size / self._workers)

    def _filled(self, service: str, rate: float, burst: float) -> _Bucket:
        """The bucket as it is now; a new one is full."""
        now = self._clock.monotonic()
        bucket = self._buckets.get(service)
        if bucket is None:
            bucket = self._buckets[service] = _Bucket(burst, now)
            if len(self._buckets) > MAX_BUCKETS:
                self._buckets.popitem(last=False)
            return bucket
        self._buckets.move_to_end(service)
        bucket.level, bucket.at = bucket.level_at(now, rate, burst), now
        return bucket


def _too_many(level: float, rate: float) -> Rejection:
    after_s = max(1, math.ceil((1 - level) / rate))
    return Rejection(Reason.RATE_LIMITED, "This service sends too many requests.", retry_after_s=after_s)
