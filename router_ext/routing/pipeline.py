"""The decision: rule, then filters, then scorers, then the best candidate."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from router_ext.model.backend import Backend
from router_ext.model.decision import Candidate, Choice, NoChoice
from router_ext.model.request import InferenceRequest
from router_ext.model.rule import Rule
from router_ext.model.snapshot import BackendState, Health, Snapshot
from router_ext.routing.filters import Filter
from router_ext.routing.filters.availability import Healthy, Room
from router_ext.routing.filters.capabilities import Capabilities, Vision
from router_ext.routing.filters.cost import Cost
from router_ext.routing.filters.lora import LoraAdapter
from router_ext.routing.rules import RuleTable
from router_ext.routing.scorers import Scorer
from router_ext.routing.scorers.load import Healthiest, InFlight
from router_ext.routing.scorers.preference import Order, ServesModel

DEFAULT_RULE: Final = "default"

ROOM: Final = Room()
FILTERS: Final[tuple[Filter, ...]] = (Capabilities(), Cost(), LoraAdapter(), Vision(), Healthy(), ROOM)

RULE_SCORERS: Final[tuple[Scorer, ...]] = (Healthiest(), Order(), InFlight())
DEFAULT_SCORERS: Final[tuple[Scorer, ...]] = (Healthiest(), ServesModel(), Order(), InFlight())
QUEUE_AWARE_SCORERS: Final[tuple[Scorer, ...]] = (Healthiest(), ServesModel(), InFlight(), Order())


@dataclass(frozen=True, slots=True)
class _Sifted:
    kept: Sequence[BackendState]
    dropped: tuple[Candidate, ...]

    @property
    def full(self) -> bool:
        return any(candidate.filtered_by == ROOM.name for candidate in self.dropped)


class Pipeline:
    """Routing for one configuration. Stateless between calls: equal arguments give equal results."""

    def __init__(self, rules: Iterable[Rule], fallback_chain: Sequence[str], *, queue_aware: bool = False) -> None:
        self._table = RuleTable(rules)
        self._chain = tuple(fallback_chain)
        self._default = Rule(name=DEFAULT_RULE, backends=self._chain)
        self._rule_scorers = QUEUE_AWARE_SCORERS if queue_aware else RULE_SCORERS
        self._default_scorers = QUEUE_AWARE_SCORERS if queue_aware else DEFAULT_SCORERS

    @property
    def needs_content_type(self) -> bool:
        """True when a rule looks at the content type, so that reading the messages is worth its time."""
        return self._table.needs_content_type

    def route(self, request: InferenceRequest, snapshot: Snapshot) -> Choice | NoChoice:
        """Chooses a backend.

        The matching rule's backends are tried first. When none of them can take the request, the fallback chain's
        other backends are, still under the rule's conditions on capabilities and cost.
        """
        rule = self._table.first_match(request)
        if rule is None:
            return self._choose(self._default, self._chain, request, snapshot, self._default_scorers)
        choice = self._choose(rule, rule.backends, request, snapshot, self._rule_scorers)
        rest = [name for name in self._chain if name not in rule.backends]
        if isinstance(choice, Choice) or not rest:
            return choice
        second = self._choose(rule, rest, request, snapshot, self._default_scorers)
        return _after(choice, second)

    def first_available(self, snapshot: Snapshot) -> Backend | None:
        """The first backend of the fallback chain that is not down: where requests that are no inference go."""
        states = (snapshot[name] for name in self._chain if name in snapshot)
        return next((state.backend for state in states if state.health is not Health.DOWN), None)

    def _choose(
        self,
        rule: Rule,
        names: Sequence[str],
        request: InferenceRequest,
        snapshot: Snapshot,
        scorers: Sequence[Scorer],
    ) -> Choice | NoChoice:
        sifted = _sift([snapshot[name] for name in names if name in snapshot], request, rule, FILTERS)
        if not sifted.kept:
            return NoChoice(rule.name, sifted.dropped, sifted.full)
        ranked = _rank(sifted.kept, request, scorers)
        best = ranked[0][0].backend
        candidates = tuple(candidate for _, candidate in ranked) + sifted.dropped
        return Choice(best, rule.name, upstream_model(best, request.model), candidates)


def upstream_model(backend: Backend, requested: str) -> str:
    """The model name to send: the adapter when the backend has one of the requested name, else its own model."""
    return requested if requested in backend.lora_adapters else backend.model_name


def _sift(states: Sequence[BackendState], request: InferenceRequest, rule: Rule, filters: Sequence[Filter]) -> _Sifted:
    kept = states
    dropped: list[Candidate] = []
    for test in filters:
        removed = test.removed(kept, request, rule) if kept else {}
        if removed:
            dropped.extend(Candidate(name, filtered_by=test.name, reason=reason) for name, reason in removed.items())
            kept = [state for state in kept if state.backend.name not in removed]
    return _Sifted(kept, tuple(dropped))


def _rank(
    states: Sequence[BackendState], request: InferenceRequest, scorers: Sequence[Scorer]
) -> list[tuple[BackendState, Candidate]]:
    names = tuple(scorer.name for scorer in scorers)
    rows = list(zip(*(scorer.scores(states, request) for scorer in scorers), strict=True))
    order = sorted(range(len(states)), key=rows.__getitem__)
    return [
        (states[i], Candidate(states[i].backend.name, scores=tuple(zip(names, rows[i], strict=True)))) for i in order
    ]


def _after(first: NoChoice, second: Choice | NoChoice) -> Choice | NoChoice:
    """The second attempt's result with what the first one saw."""
    candidates = second.candidates + first.candidates
    if isinstance(second, NoChoice):
        return NoChoice(second.rule, candidates, first.full or second.full)
    return Choice(second.backend, second.rule, second.upstream_model, candidates)
