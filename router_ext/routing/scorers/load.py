"""Preferences that follow the backends' state."""

from collections.abc import Sequence

from router_ext.model.request import InferenceRequest
from router_ext.model.snapshot import BackendState, Health


class Healthiest:
    """Healthy backends before degraded ones."""

    name = "health"

    def scores(self, candidates: Sequence[BackendState], request: InferenceRequest) -> Sequence[float]:
        """0 for a healthy backend, 1 for a degraded one."""
        return [0 if state.health is Health.HEALTHY else 1 for state in candidates]


class InFlight:
    """Fewest requests of this router in flight."""

    name = "in_flight"

    def scores(self, candidates: Sequence[BackendState], request: InferenceRequest) -> Sequence[float]:
        """The number of requests in flight."""
        return [state.in_flight for state in candidates]
