"""A pinned backend outside the rule's list: it may serve where its cache is worth more than the list's."""

from collections.abc import Sequence

from router_ext.model.rule import Rule
from router_ext.model.snapshot import BackendState, Health
from router_ext.routing.asked import Asked
from router_ext.routing.filters import Filter
from router_ext.routing.ranking import FILTERS, sift
from router_ext.routing.scorers.cache import Pinned, usable


def with_outsider(
    kept: Sequence[BackendState],
    listed: Sequence[BackendState],
    asked: Asked,
    rule: Rule,
    pinned: Pinned,
    *,
    filters: Sequence[Filter] = FILTERS,
) -> Sequence[BackendState]:
    """``kept`` with one more backend in front, if there is one outside ``listed`` that is healthy, serves the
    requested name, passes ``filters`` beside the listed ones, is not overloaded, and holds more of the prompt than any
    usable pin in ``kept``.
    """
    matched = asked.affinity.matched
    names = {state.backend.name for state in listed}
    outside = [asked.snapshot[name] for name in matched if name in asked.snapshot and name not in names]
    for state in sorted(outside, key=lambda state: -usable(state, matched)):
        both = [state, *kept]
        mine, *others = pinned.scores(both, asked.request, asked.affinity)
        if mine < min(others, default=0) and _may_serve(state, listed, asked, rule, filters):
            return both
    return kept


def _may_serve(
    state: BackendState, listed: Sequence[BackendState], asked: Asked, rule: Rule, filters: Sequence[Filter]
) -> bool:
    if state.health is not Health.HEALTHY or not state.backend.serves(asked.request.model):
        return False
    return state in sift([*listed, state], asked, rule, filters).kept
