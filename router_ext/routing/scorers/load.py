"""Preferences that follow the backends' state."""

from collections.abc import Sequence

from router_ext.model.affinity import Affinity
from router_ext.model.request import InferenceRequest
from router_ext.model.snapshot import BackendState, Health


class Healthiest:
    """Healthy backends before degraded ones."""

    name = "health"

    def scores(
        self, candidates: Sequence[BackendState], request: InferenceRequest, affinity: Affinity
    ) -> Sequence[float]:
        """0 for a healthy backend, 1 for a degraded one."""
        healthy = Health.HEALTHY
        return [0 if state.health is healthy else 1 for state in candidates]


class InFlight:
    """Fewest requests of this router in flight."""

    name = "in_flight"

    def scores(
        self, candidates: Sequence[BackendState], request: InferenceRequest, affinity: Affinity
    ) -> Sequence[float]:
        """The number of requests in flight."""
        return [state.in_flight for state in candidates]


class QueueLoad:
    """Fewest requests in the backend, whoever sent them."""

    name = "load"

    def scores(
        self, candidates: Sequence[BackendState], request: InferenceRequest, affinity: Affinity
    ) -> Sequence[float]:
        """The number of requests."""
        return [state.in_flight + state.elsewhere for state in candidates]
