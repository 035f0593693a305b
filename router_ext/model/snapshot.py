"""The state of the backends at one instant, as routing sees it."""

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from router_ext.model.backend import Backend


class Health(StrEnum):
    """What probes say of a backend. ``degraded`` still takes requests, after every healthy one; ``down`` takes none."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    DOWN = "down"


class Prefill(Struct, frozen=True, gc=False):
    """The prefill work of one backend, in the unit of ``Prompt.size``; only what its cache does not hold counts.

    ``rate`` (size per second) is 0 until it is learned. ``queued`` is the work without a first token yet, ``behind``
    the part of it that waits behind the request at the head. ``free_at`` (monotonic seconds) is when the work is
    expected to be done; it means nothing while the rate is unknown.
    """

    rate: float = 0.0
    queued: float = 0.0
    behind: float = 0.0
    free_at: float = -math.inf

    def wait_s(self, now: float, rate: float) -> float:
        """Seconds (≥ 0) before another request's prefill begins. ``rate`` (> 0) stands in for one not learned.

        A request that is overdue at the head takes no time any more, but what is behind it still has to be done.
        """
        if not self.rate:
            return self.queued / rate
        wait, least = self.free_at - now, self.behind / rate
        return wait if wait > least else least


IDLE: Final = Prefill()

MIN_SAMPLES: Final = 10
"""Fewest samples from which the percentiles of times to the first token are used."""

STALE_S: Final = 300.0
"""Seconds after which times to the first token say nothing any more, when no newer one has come."""


class TtftStats(Struct, frozen=True, gc=False):
    """Times to the first token of one backend, over its last 100 requests.

    ``samples`` (≥ 0) counts them, ``newest_at`` (monotonic seconds) is the time of the last one. The percentiles, in
    milliseconds, mean nothing without samples.
    """

    samples: int = 0
    newest_at: float = -math.inf
    p50_ms: float = 0.0
    p95_ms: float = 0.0

    def is_telling(self, now: float) -> bool:
        """True when the percentiles can be used to judge the backend: enough samples, the last one not too old."""
        return self.samples >= MIN_SAMPLES and now - self.newest_at <= STALE_S


NO_SAMPLES: Final = TtftStats()


class BackendState(Struct, frozen=True):
    """One backend at one instant.

    ``in_flight`` (≥ 0) counts this router's own requests, ``elsewhere`` (≥ 0) those that the backend says it has beside
    them: 0 when it does not say. ``tripped`` is true while its circuit breaker is open; it is then down as well.
    ``paused_until`` (monotonic seconds) is when a backend that asked for a pause takes requests again. ``drained`` is
    true while the operator wants no new requests there.
    """

    backend: Backend
    health: Health
    in_flight: int = 0
    elsewhere: float = 0.0
    prefill: Prefill = IDLE
    tripped: bool = False
    paused_until: float = -math.inf
    ttft: TtftStats = NO_SAMPLES
    drained: bool = False

    @property
    def load(self) -> float:
        """Requests in the backend, whoever sent them."""
        return self.in_flight + self.elsewhere

    @property
    def takes_requests(self) -> bool:
        """Neither down nor drained. It may be full or pausing."""
        return self.health is not Health.DOWN and not self.drained


Snapshot = Mapping[str, BackendState]
"""Every configured backend by name. It does not change while a decision is made."""
