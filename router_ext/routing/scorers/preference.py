"""Fixed preferences: the configured order, the model that the client named, and chance among equals."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final
from zlib import crc32

from router_ext.model.affinity import Affinity
from router_ext.model.request import InferenceRequest
from router_ext.model.snapshot import BackendState

_BITS: Final = 0xFFFFFFFF
_MIX: Final = 0x9E3779B1


class Order:
    """The position in the rule's list or in the fallback chain."""

    name = "order"

    def scores(
        self, candidates: Sequence[BackendState], request: InferenceRequest, affinity: Affinity
    ) -> Sequence[float]:
        """0 for the first candidate, 1 for the next."""
        return range(len(candidates))


class ServesModel:
    """Backends that know the requested model name come before those that would answer with another model."""

    name = "serves_model"

    def scores(
        self, candidates: Sequence[BackendState], request: InferenceRequest, affinity: Affinity
    ) -> Sequence[float]:
        """0 for a backend that serves the name, 1 for any other."""
        return [0 if state.backend.serves(request.model) else 1 for state in candidates]


class Seeded:
    """Another order for every seed, so that equal backends share the work; the same one for the same seed."""

    name = "seed"

    def scores(
        self, candidates: Sequence[BackendState], request: InferenceRequest, affinity: Affinity
    ) -> Sequence[float]:
        """A number of 32 bits that depends on the seed and the backend's name."""
        # Multiplying by an odd number permutes the 32-bit numbers; a sum or an exclusive or would favour some names.
        factor = (affinity.seed * _MIX | 1) & _BITS
        return [_hash(state.backend.name) * factor & _BITS for state in candidates]


@lru_cache(maxsize=4096)
def _hash(name: str) -> int:
    return crc32(name.encode())
