"""Fixed preferences: the configured order, and the model that the client named."""

from collections.abc import Sequence

from router_ext.model.request import InferenceRequest
from router_ext.model.snapshot import BackendState


class Order:
    """The position in the rule's list or in the fallback chain."""

    name = "order"

    def scores(self, candidates: Sequence[BackendState], request: InferenceRequest) -> Sequence[float]:
        """0 for the first candidate, 1 for the next."""
        return range(len(candidates))


class ServesModel:
    """Backends that know the requested model name come before those that would answer with another model."""

    name = "serves_model"

    def scores(self, candidates: Sequence[BackendState], request: InferenceRequest) -> Sequence[float]:
        """0 for a backend that serves the name, 1 for any other."""
        return [0 if request.model in state.backend.served_names else 1 for state in candidates]
