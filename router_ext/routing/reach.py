"""How far back a backend's prefix cache reaches, learned from the cached tokens that it reports.

A cache with least-recently-used eviction holds what was used since it last took in as much as it can hold. So the depth
of a prefix is what the backend prefilled since that prefix was last used, and one number, the reach, parts the depths
that are still cached from those that are not. Sizes are in the unit of ``Prompt.size``.
"""

import math
from bisect import bisect_right
from typing import Final

MARGIN: Final = 0.9
"""A prefix that was gone at some depth lowers the reach to this share of that depth."""

GROWTH: Final = 1.01
"""A hit near the edge raises the reach by this factor, so that it finds the edge again after it fell too far."""

EDGE: Final = 0.8
"""Where the edge begins, as a share of the reach."""

TOLERANCE: Final = 0.9
"""A share of the predicted prefix that makes a hit: estimates of size are not exact, and caches keep whole blocks."""

SLACK: Final = 2048
"""What may be missing of any predicted prefix, however short."""

MAX_MARKS: Final = 2048
"""Marks kept of the past; above that, those out of reach go, and every second one of the others."""


def is_hit(predicted: float, cached: float) -> bool:
    """True when the cache held about what was predicted."""
    return cached >= predicted * TOLERANCE - SLACK


class CacheReach:
    """The reach of one backend's cache. ``now`` is seconds of any steady clock."""

    def __init__(self) -> None:
        self._reach = math.inf
        self._taken = 0.0
        self._marks: list[tuple[float, float]] = []

    def depth(self, used_at: float) -> float:
        """What the backend prefilled since ``used_at``, rounded down to the marks."""
        index = bisect_right(self._marks, (used_at, math.inf))
        return self._taken - self._marks[index][1] if index < len(self._marks) else 0.0

    def horizon(self) -> float:
        """Uses before this time are gone from the cache; -inf while it is not known to end."""
        index = self._edge()
        return self._marks[index - 1][0] if index else -math.inf

    def prefilled(self, size: float, now: float) -> None:
        """The backend took in ``size`` of new text."""
        self._taken += size
        self._marks.append((now, self._taken))
        if len(self._marks) > MAX_MARKS:
            del self._marks[: max(0, self._edge() - 1)]
            del self._marks[:-1:2]

    def observe(self, depth: float, predicted: float, cached: float) -> bool:
        """What the cache held of a predicted prefix that lay at ``depth``. Returns False for a prefix that was gone.

        A cache that served a prompt is at least as large as that prompt, whatever was gone at whatever depth.
        """
        if is_hit(predicted, cached):
            self._found(depth, beyond=not is_hit(cached, predicted))
            return True
        lowered = min(max(depth * MARGIN, predicted), self._reach)
        self._reach = lowered if self._reach == math.inf else max(lowered, self._reach * MARGIN)
        return False

    def _edge(self) -> int:
        """How many marks are out of reach."""
        return bisect_right(self._marks, self._taken - self._reach, key=lambda mark: mark[1])

    def _found(self, depth: float, *, beyond: bool) -> None:
        """``beyond`` says that the cache held more than was predicted: perhaps what was taken to be out of reach."""
        if self._reach < math.inf:
            near = beyond or depth > self._reach * EDGE
            grown = self._reach * GROWTH if near else self._reach
            self._reach = max(depth, grown)
