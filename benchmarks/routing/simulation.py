"""One policy over one list of requests."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.routing.cluster import Node, Served
from benchmarks.routing.policies import POLICIES, Policy
from benchmarks.routing.trace import Turn


@dataclass(frozen=True, slots=True)
class Result:
    """What the clients saw. ``hit`` is the share of prompt tokens that were cached; times are seconds.

    ``max_over_mean`` compares the busiest node's requests with the mean.
    """

    hit: float
    mean_s: float
    p90_s: float
    p99_s: float
    max_over_mean: float


class _Events:
    """First tokens and ends to come. At equal times the older request is first."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._heap: list[tuple[float, int, bool, Served]] = []

    def add(self, number: int, served: Served) -> None:
        """A request was taken."""
        heapq.heappush(self._heap, (served.first_token_s, number, False, served))

    def run_until(self, now: float) -> None:
        """Tells the policy everything up to ``now``."""
        while self._heap and self._heap[0][0] <= now:
            at, number, ends, served = self._heap[0]
            if ends:
                heapq.heappop(self._heap)
                self._policy.end(number, served, at)
            else:
                heapq.heapreplace(self._heap, (served.end_s, number, True, served))
                self._policy.first_token(number, at)


def simulate(turns: Sequence[Turn], policy_name: str, nodes: int, capacity: int, speed: float = 1.0) -> Result:
    """Replays ``turns``, ``speed`` times as fast, over ``nodes`` with ``capacity`` blocks of cache each."""
    cluster = [Node(capacity) for _ in range(nodes)]
    policy = POLICIES[policy_name](cluster)
    events = _Events(policy)
    waits: list[float] = []
    cached = 0
    for number, turn in enumerate(turns):
        now = turn.arrival_s / speed
        events.run_until(now)
        served = cluster[policy.choose(number, turn, now)].serve(turn, now)
        events.add(number, served)
        waits.append(served.first_token_s - now)
        cached += served.cached
    waits.sort()
    count = len(waits)
    return Result(
        hit=cached / sum(turn.tokens for turn in turns),
        mean_s=sum(waits) / count,
        p90_s=waits[int(0.9 * count)],
        p99_s=waits[int(0.99 * count)],
        max_over_mean=max(node.requests for node in cluster) * nodes / count,
    )
