"""From probe results to a backend's health."""

from enum import Enum, auto
from typing import Final

from router_ext.model.snapshot import Health

DOWN_AFTER: Final = 2
"""Failed probes in a row after which a backend is down."""


class ProbeResult(Enum):
    """What one probe saw."""

    OK = auto()
    ODD = auto()
    """An answer that proves life but is not a success, such as 404."""
    FAILED = auto()
    """A server error."""
    SLOW = auto()
    """No answer in time."""
    UNREACHABLE = auto()
    """No connection."""


class ProbeHistory:
    """The health of one backend after its last probes.

    ======== ============================================================================================
    result   health afterwards
    ======== ============================================================================================
    ok       healthy
    odd      degraded
    failed   degraded; down after two in a row, or when it was never up
    slow     like failed, but never worse than degraded while the backend answers requests: an engine at
             full load answers its probes late
    unreachable  down at once
    ======== ============================================================================================
    """

    def __init__(self, health: Health = Health.DOWN) -> None:
        self.health = health
        self._failures = 0

    def add(self, result: ProbeResult, *, answering: bool) -> Health:
        """Takes one result; ``answering`` says that the backend answered a request since the last probe."""
        match result:
            case ProbeResult.OK:
                self._failures, self.health = 0, Health.HEALTHY
            case ProbeResult.ODD:
                self._failures, self.health = 0, Health.DEGRADED
            case ProbeResult.UNREACHABLE:
                self._failures, self.health = DOWN_AFTER, Health.DOWN
            case ProbeResult.SLOW if answering:
                self._failures, self.health = 0, Health.DEGRADED
            case ProbeResult.FAILED | ProbeResult.SLOW:
                self._failures += 1
                if self._failures >= DOWN_AFTER or self.health is Health.DOWN:
                    self.health = Health.DOWN
                else:
                    self.health = Health.DEGRADED
        return self.health


def result_of_status(status: int) -> ProbeResult:
    """What an HTTP status says. 429 comes from a server that is busy, not broken."""
    if 200 <= status < 400 or status == 429:
        return ProbeResult.OK
    return ProbeResult.ODD if status < 500 else ProbeResult.FAILED


def next_delay_s(health: Health, attempt: int, interval_s: float) -> float:
    """Seconds until the next probe: the interval while healthy, else a backoff from 0.5 s that doubles up to it.

    ``attempt`` (≥ 0) counts the probes since the backend was last healthy.
    """
    if health is Health.HEALTHY:
        return interval_s
    return float(min(interval_s, 0.5 * 2.0 ** min(attempt, 10)))
