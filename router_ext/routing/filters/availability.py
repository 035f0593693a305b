"""Who can take a request now: what the operator wants, health, what the request has tried, pauses and room."""

import math
from collections.abc import Mapping, Sequence

from router_ext.model.rule import Rule
from router_ext.model.snapshot import BackendState, Health
from router_ext.routing.asked import Asked


class Drained:
    """Leaves out backends that the operator wants no new requests for."""

    name = "drained"

    def removed(self, candidates: Sequence[BackendState], asked: Asked, rule: Rule) -> Mapping[str, str]:
        """Every drained backend."""
        return {state.backend.name: "is drained" for state in candidates if state.drained}


class Healthy:
    """Leaves out backends that are down."""

    name = "health"

    def removed(self, candidates: Sequence[BackendState], asked: Asked, rule: Rule) -> Mapping[str, str]:
        """Every backend that is down, and whether its circuit breaker or a probe says so."""
        down = Health.DOWN
        return {
            state.backend.name: "its circuit breaker is open" if state.tripped else "is down"
            for state in candidates
            if state.health is down
        }


class Tried:
    """Leaves out backends that have already failed the request."""

    name = "tried"

    def removed(self, candidates: Sequence[BackendState], asked: Asked, rule: Rule) -> Mapping[str, str]:
        """Every backend of an earlier attempt."""
        tried = asked.tried
        if not tried:
            return {}
        names = [state.backend.name for state in candidates]
        return {name: "has already failed this request" for name in names if name in tried}


class Paused:
    """Leaves out backends that asked for a pause, until it has passed."""

    name = "pause"

    def removed(self, candidates: Sequence[BackendState], asked: Asked, rule: Rule) -> Mapping[str, str]:
        """Every backend whose pause goes on, with the seconds that are left, rounded up."""
        now = asked.now
        return {
            state.backend.name: f"asked for a pause of {math.ceil(state.paused_until - now)} s more"
            for state in candidates
            if now < state.paused_until
        }


class Room:
    """Leaves out backends that already serve ``max_concurrent`` requests of this router."""

    name = "max_concurrent"

    def removed(self, candidates: Sequence[BackendState], asked: Asked, rule: Rule) -> Mapping[str, str]:
        """Every full backend, with its count."""
        return {
            state.backend.name: f"serves {state.in_flight} of {state.backend.max_concurrent}"
            for state in candidates
            if state.in_flight >= state.backend.max_concurrent
        }
