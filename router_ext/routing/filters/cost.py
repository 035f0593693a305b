"""A rule's price ceiling."""

from collections.abc import Mapping, Sequence

from router_ext.model.rule import Rule
from router_ext.model.snapshot import BackendState
from router_ext.routing.asked import Asked


class Cost:
    """Keeps backends whose higher price is at most ``max_cost_1m``. A backend without prices costs nothing."""

    name = "cost"

    def removed(self, candidates: Sequence[BackendState], asked: Asked, rule: Rule) -> Mapping[str, str]:
        """States the price that was too high."""
        ceiling = rule.max_cost_1m
        if not ceiling:
            return {}
        return {
            state.backend.name: f"costs ${state.backend.max_cost_1m:g} per 1M tokens, over ${ceiling:g}"
            for state in candidates
            if (state.backend.cost_input_1m or 0.0) > ceiling or (state.backend.cost_output_1m or 0.0) > ceiling
        }
