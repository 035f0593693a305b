"""The prefix cache of one simulated engine: block hashes, least recently used out first."""

from collections import OrderedDict
from collections.abc import Sequence


class PrefixCache:
    """Holds at most ``capacity`` blocks."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._blocks: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._blocks)

    def match(self, blocks: Sequence[int]) -> int:
        """How many leading blocks are held: the first one that is missing ends the prefix."""
        for index, block in enumerate(blocks):
            if block not in self._blocks:
                return index
        return len(blocks)

    def insert(self, blocks: Sequence[int]) -> None:
        """Hold these blocks, the head of the chain as the most recent one: a tail without its head can never match."""
        for block in reversed(blocks):
            self._blocks[block] = None
            self._blocks.move_to_end(block)
        while len(self._blocks) > self._capacity:
            self._blocks.popitem(last=False)

    def clear(self) -> None:
        """Forget everything, as a restarted engine does."""
        self._blocks.clear()
