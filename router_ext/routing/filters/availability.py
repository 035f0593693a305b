"""Who can take a request now: health and room."""

from collections.abc import Mapping, Sequence

from router_ext.model.request import InferenceRequest
from router_ext.model.rule import Rule
from router_ext.model.snapshot import BackendState, Health


class Healthy:
    """Leaves out backends that are down."""

    name = "health"

    def removed(self, candidates: Sequence[BackendState], request: InferenceRequest, rule: Rule) -> Mapping[str, str]:
        """Every backend that is down."""
        down = Health.DOWN
        return {state.backend.name: "is down" for state in candidates if state.health is down}


class Room:
    """Leaves out backends that already serve ``max_concurrent`` requests of this router."""

    name = "max_concurrent"

    def removed(self, candidates: Sequence[BackendState], request: InferenceRequest, rule: Rule) -> Mapping[str, str]:
        """Every full backend, with its count."""
        return {
            state.backend.name: f"serves {state.in_flight} of {state.backend.max_concurrent}"
            for state in candidates
            if state.in_flight >= state.backend.max_concurrent
        }
