"""Comparing what is counted here with what Envoy has open.

Access log entries can be lost. An exchange whose entry never comes would be counted for ever, so the counts are held
against Envoy's own gauge. At any instant a few exchanges have ended whose entries are still on the way; only a surplus
that stays over several looks, beyond what can be on the way, is a loss.

Several workers of one router stand behind one Envoy, whose gauge knows nothing of them: it is held against the sum of
their counts.
"""

import math
from collections import deque
from collections.abc import Mapping
from typing import Final

from router_ext.engine.exchanges import OpenExchange, OpenExchanges
from router_ext.engine.pool import Pool

LOOKS: Final = 5
"""Looks over which a surplus must stay."""

IN_TRANSIT_S: Final = 0.25
"""Longest time an access log entry is on the way: the batch interval of 50 ms, with room for a busy core."""


OVER_S: Final = 3600.0
"""How long an entry may take whose backend is done with the request: the longest that a client takes to read an answer
that the router holds.
"""


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


class Losses:
    """Finds the open exchanges whose entries got lost.

    Which ones they are nobody knows, but they were open at each of the looks: the oldest of those are given up. A wrong
    one does no lasting harm. Its end is then not counted, so the surplus comes back, and a lost one is the oldest some
    day.

    All workers of a router see the same surplus, and what is lost may be of any. The first one to look five times gives
    up as many of its own; they are off the sum at once, so whoever looks next sees only what is left of the surplus.
    A wrong one brings the surplus back here too. As that happens at any time between the looks, another worker may be
    the first then, until it is the one that has the loss. Two give up too much only if they look at the same moment,
    and only until the wrong ones end.
    """

    def __init__(self, pool: Pool, exchanges: OpenExchanges) -> None:
        self._pool = pool
        self._exchanges = exchanges
        self._meters: dict[str, LeakMeter] = {}
        self._looked_at: deque[float] = deque(maxlen=LOOKS)

    def look(self, active_by_cluster: Mapping[str, int], ended_per_s: float, now: float) -> list[OpenExchange]:
        """Takes out what is lost for certain.

        The first argument is that of ``Engine.reconcile``, the second how many exchanges a second have ended here since
        the look before; ``now`` is monotonic seconds.
        """
        others_ended = self._tell_ended(ended_per_s)
        if not active_by_cluster:
            return []
        self._looked_at.append(now)
        slots = {slot.state.backend.cluster: slot for slot in self._pool.slots().values()}
        lost = self._exchanges.give_up_over(now - OVER_S)
        for cluster in active_by_cluster.keys() | self._exchanges.clusters():
            # Of a backend that is not configured here the others' requests are not known: fewer seem lost then.
            others = slots[cluster].others_in_flight() if cluster in slots else 0
            surplus = self._exchanges.count(cluster) + others - active_by_cluster.get(cluster, 0)
            number = self._meters.setdefault(cluster, LeakMeter()).observe(surplus, ended_per_s + others_ended)
            if number:
                lost += self._exchanges.give_up(cluster, number, self._looked_at[0])
        return lost

    def _tell_ended(self, per_s: float) -> float:
        """Tells the other workers, and returns how many a second have ended there."""
        if self._pool.tally is None:
            return 0.0
        self._pool.tally.tell_ended(per_s)
        return self._pool.tally.others_ended()
