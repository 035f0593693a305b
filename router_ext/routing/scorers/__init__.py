"""Scorers: each gives every remaining candidate a number; lower is better, and earlier scorers count first."""

from collections.abc import Sequence
from typing import Protocol

from router_ext.model.affinity import NO_AFFINITY as NO_AFFINITY
from router_ext.model.affinity import Affinity
from router_ext.model.request import InferenceRequest
from router_ext.model.snapshot import BackendState


class Scorer(Protocol):
    """One preference among backends that all may serve. A new scorer is one file and one line in the pipeline."""

    name: str

    def scores(
        self, candidates: Sequence[BackendState], request: InferenceRequest, affinity: Affinity
    ) -> Sequence[float]:
        """One finite number per candidate, in their order."""
        ...
