"""The engines: each prefills one prompt after the other and keeps the blocks that it used last."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.routing.trace import BLOCK, Turn

PREFILL_RATE: Final = 20_000.0
"""Tokens a second."""

TOKEN_S: Final = 0.02
"""Seconds for each token of the answer. Decoding does not slow prefill down."""


@dataclass(frozen=True, slots=True)
class Served:
    """When the first token and the last one come, and how many tokens of the prompt were cached."""

    first_token_s: float
    end_s: float
    cached: int


class Node:
    """One engine. A prompt's blocks are in its cache as soon as it is queued: nothing else is looked up before."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._cache: OrderedDict[int, None] = OrderedDict()
        self._free_s = 0.0
        self.requests = 0

    def cached(self, turn: Turn) -> int:
        """Tokens of the longest prefix in the cache. The last token is always computed."""
        cache = self._cache
        count = 0
        for block in turn.blocks:
            if block not in cache:
                break
            count += 1
        return min(count * BLOCK, turn.tokens - 1)

    def ttft_s(self, turn: Turn, now: float) -> float:
        """What ``serve`` would make the client wait."""
        return max(0.0, self._free_s - now) + (turn.tokens - self.cached(turn)) / PREFILL_RATE

    def serve(self, turn: Turn, now: float) -> Served:
        """Takes a request."""
        cached = self.cached(turn)
        self._free_s = max(now, self._free_s) + (turn.tokens - cached) / PREFILL_RATE
        self._use(turn.blocks)
        self.requests += 1
        return Served(self._free_s, self._free_s + turn.output * TOKEN_S, cached)

    def _use(self, blocks: Sequence[int]) -> None:
        cache = self._cache
        for block in reversed(blocks):
            cache[block] = None
            cache.move_to_end(block)
        for _ in range(len(cache) - self._capacity):
            cache.popitem(last=False)
