"""How many tokens a text will have, estimated from what its model counted before."""

from collections import OrderedDict
from typing import Final

BYTES_PER_TOKEN: Final = 4.0
"""What is assumed of a model until it has counted something: about English prose."""

LOWEST: Final = 0.25
HIGHEST: Final = 16.0
"""Bounds of one observation: a short prompt is mostly the template's tokens, and an image has few for its bytes."""

WEIGHT: Final = 0.2
"""Weight of a new observation in the moving average."""

MAX_MODELS: Final = 1024
"""Most models that are remembered, so that made-up names cost no memory; the least recently used goes first."""


class TokenRatio:
    """Bytes per token of each model, as an exponential moving average."""

    def __init__(self) -> None:
        self._ratios: OrderedDict[str, float] = OrderedDict()

    def observe(self, model: str, size_bytes: int, tokens: int) -> None:
        """Learns that ``size_bytes`` were ``tokens``. Nothing is learned where either is below 1."""
        if size_bytes < 1 or tokens < 1:
            return
        seen = min(HIGHEST, max(LOWEST, size_bytes / tokens))
        known = self._ratios.get(model, seen)
        self._ratios[model] = known + WEIGHT * (seen - known)
        self._ratios.move_to_end(model)
        if len(self._ratios) > MAX_MODELS:
            self._ratios.popitem(last=False)

    def estimate(self, model: str, size_bytes: int) -> int:
        """The tokens of ``size_bytes`` (≥ 0), rounded up."""
        if model in self._ratios:
            self._ratios.move_to_end(model)
        return _ceiling(size_bytes / self._ratios.get(model, BYTES_PER_TOKEN))


def _ceiling(value: float) -> int:
    return -int(-value // 1)
