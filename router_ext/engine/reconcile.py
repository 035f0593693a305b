"""Comparing what is counted here with what Envoy has open.

Access log entries can be lost. An exchange whose entry never comes would be counted for ever, so the counts are held
against Envoy's own gauge. At any instant a few exchanges have ended whose entries are still on the way; only a surplus
that stays over several looks, beyond what can be on the way, is a loss.
"""

import math
from collections import deque
from typing import Final

LOOKS: Final = 5
"""Looks over which a surplus must stay."""

IN_TRANSIT_S: Final = 0.25
"""Longest time an access log entry is on the way: the batch interval of 50 ms, with room for a busy core."""


class LeakMeter:
    """The surplus of one backend over time."""

    def __init__(self) -> None:
        self._surpluses: deque[int] = deque(maxlen=LOOKS)

    def observe(self, surplus: int, ended_per_s: float) -> int:
        """Takes one look: exchanges counted here beyond Envoy's, and how many a second have ended lately.

        Returns how many exchanges are lost for certain (≥ 0), and starts anew after a loss.
        """
        in_transit = math.ceil(ended_per_s * IN_TRANSIT_S)
        self._surpluses.append(max(0, surplus - in_transit))
        if len(self._surpluses) < LOOKS:
            return 0
        lost = min(self._surpluses)
        if lost:
            self._surpluses.clear()
        return lost
