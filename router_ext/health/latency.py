"""How long a backend takes to its first token: raw percentiles over its last requests.

Times are taken as they are, however long the answers were. ``now`` is monotonic seconds and never goes back.
"""

import math
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Sequence
from typing import Final

from router_ext.model.snapshot import NO_SAMPLES, TtftStats

WINDOW: Final = 100
"""Times that are kept; the oldest one makes room."""


class TtftWindow:
    """The last ``WINDOW`` times to first token of one backend.

    ``stats`` is ``NO_SAMPLES`` before the first one; it is replaced by ``add`` and never changed.
    """

    def __init__(self) -> None:
        self._arrived: deque[float] = deque()
        self._ascending: list[float] = []
        self.stats: TtftStats = NO_SAMPLES

    def add(self, ttft_s: float, now: float) -> None:
        """Takes one time, in seconds. ValueError, and no change, when it is negative or not finite."""
        if not 0 <= ttft_s < math.inf:
            raise ValueError(f"{ttft_s} is no time to a first token")
        if len(self._arrived) == WINDOW:
            del self._ascending[bisect_left(self._ascending, self._arrived.popleft())]
        self._arrived.append(ttft_s)
        insort(self._ascending, ttft_s)
        self.stats = TtftStats(len(self._ascending), now, self._percentile_ms(50), self._percentile_ms(95))

    def _percentile_ms(self, percent: int) -> float:
        return nearest_rank(self._ascending, percent) * 1000


def nearest_rank(ascending: Sequence[float], percent: int) -> float:
    """A percentile (1..100) of at least one value: that at position ``ceil(percent / 100 * n)``, from 1.

    The inverse of the empirical distribution function, type 1 of Hyndman and Fan, "Sample Quantiles in Statistical
    Packages", The American Statistician 50 (1996). It is always a value that was measured. In whole numbers, so that no
    rounding moves the position.
    """
    rank = -(-percent * len(ascending) // 100)
    return ascending[rank - 1]
