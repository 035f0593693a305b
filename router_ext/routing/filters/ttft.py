"""A rule's limit on the time to the first token."""

import math
from collections.abc import Mapping, Sequence

from router_ext.model.rule import Rule
from router_ext.model.snapshot import BackendState
from router_ext.routing.asked import Asked


class TtftSla:
    """Keeps backends whose P95 of the time to the first token is at most ``max_ttft_ms``, and those of which too little
    is known.
    """

    name = "max_ttft"

    def removed(self, candidates: Sequence[BackendState], asked: Asked, rule: Rule) -> Mapping[str, str]:
        """States the percentile that was too high, in milliseconds, rounded up."""
        limit = rule.max_ttft_ms
        if not limit:
            return {}
        return {
            state.backend.name: f"P95 of {math.ceil(state.ttft.p95_ms)} ms is over {limit} ms"
            for state in candidates
            if state.ttft.p95_ms > limit and state.ttft.is_telling(asked.now)
        }
