"""The decision: rule, then filters, then scorers, then the best candidate."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from router_ext.model.affinity import Affinity, Balancing
from router_ext.model.backend import Backend
from router_ext.model.decision import Choice, NoChoice
from router_ext.model.request import InferenceRequest
from router_ext.model.rule import Rule
from router_ext.model.snapshot import Health, Snapshot
from router_ext.routing.asked import Asked
from router_ext.routing.outsiders import with_outsider
from router_ext.routing.ranking import Ranker, sift
from router_ext.routing.rules import RuleTable
from router_ext.routing.scorers import NO_AFFINITY
from router_ext.routing.scorers.cache import Pinned, PredictedTtft, Uncached, usable
from router_ext.routing.scorers.load import Healthiest, InFlight, QueueLoad
from router_ext.routing.scorers.preference import Order, Seeded, ServesModel

DEFAULT_RULE: Final = "default"

IN_ORDER: Final = Ranker((Healthiest(), Order(), InFlight()))
CHAIN: Final = Ranker((Healthiest(), ServesModel(), Order(), InFlight()))
QUEUE_AWARE: Final = Ranker((Healthiest(), ServesModel(), InFlight(), Order()))
PREDICTED: Final = Ranker((Healthiest(), ServesModel(), PredictedTtft(), Uncached(), InFlight(), Seeded()))


@dataclass(frozen=True, slots=True)
class _Rankers:
    """How a rule's own backends are ranked, and how the fallback chain's are."""

    rule: Ranker
    chain: Ranker


def _plain(queue_aware: bool) -> _Rankers:
    return _Rankers(QUEUE_AWARE, QUEUE_AWARE) if queue_aware else _Rankers(IN_ORDER, CHAIN)


def _pinning(pinned: Pinned, queue_aware: bool) -> _Rankers:
    if queue_aware:
        by_load = Ranker((Healthiest(), ServesModel(), pinned, QueueLoad(), InFlight(), Seeded()))
        return _Rankers(by_load, by_load)
    return _Rankers(
        Ranker((Healthiest(), pinned, Order(), InFlight())),
        Ranker((Healthiest(), ServesModel(), pinned, Order(), InFlight())),
    )


class Pipeline:
    """Routing for one configuration. Stateless between calls: equal arguments give equal results.

    ``balancing`` and ``max_queue_ratio`` (≥ 1) count for requests whose affinity is given. With ``pin`` and without
    ``queue_aware`` a request without a usable pin follows the configured order; with it, the least load.
    """

    def __init__(
        self,
        rules: Iterable[Rule],
        fallback_chain: Sequence[str],
        *,
        queue_aware: bool = False,
        balancing: Balancing = Balancing.PIN,
        max_queue_ratio: float = 2.0,
    ) -> None:
        self._table = RuleTable(rules)
        self._chain = tuple(fallback_chain)
        self._default = Rule(name=DEFAULT_RULE, backends=self._chain)
        self._pinned = Pinned(max_queue_ratio) if balancing is Balancing.PIN else None
        self._plain = _plain(queue_aware)
        self._affine = _pinning(self._pinned, queue_aware) if self._pinned else _Rankers(PREDICTED, PREDICTED)

    @property
    def needs_content_type(self) -> bool:
        """True when a rule looks at the content type, so that reading the messages is worth its time."""
        return self._table.needs_content_type

    def route(
        self, request: InferenceRequest, snapshot: Snapshot, affinity: Affinity | None = None
    ) -> Choice | NoChoice:
        """Chooses a backend.

        The matching rule's backends are tried first. When none of them can take the request, the fallback chain's
        other backends are, still under the rule's conditions on capabilities and cost, and not in place of one that is
        away and alone has the requested adapter or sees images.

        ``affinity`` is None where nothing is pinned or predicted.
        """
        rankers = self._plain if affinity is None else self._affine
        asked = Asked(request, snapshot, NO_AFFINITY if affinity is None else affinity)
        rule = self._table.first_match(request)
        if rule is None:
            return self._choose(self._default, self._chain, asked, rankers.chain)
        choice = self._choose(rule, rule.backends, asked, rankers.rule)
        rest = [name for name in self._chain if name not in rule.backends]
        if isinstance(choice, Choice) or not rest:
            return choice
        # The rule's own backends stay in view: one that is away may be the only owner of the adapter.
        second = self._choose(rule, (*rule.backends, *rest), asked, rankers.chain)
        return second if isinstance(second, Choice) else _refused_twice(choice, second)

    def first_available(self, snapshot: Snapshot) -> Backend | None:
        """The first backend of the fallback chain that is not down: where requests that are no inference go."""
        states = (snapshot[name] for name in self._chain if name in snapshot)
        return next((state.backend for state in states if state.health is not Health.DOWN), None)

    def _choose(self, rule: Rule, names: Sequence[str], asked: Asked, ranker: Ranker) -> Choice | NoChoice:
        states = [asked.snapshot[name] for name in names if name in asked.snapshot]
        sifted = sift(states, asked.request, rule)
        kept = sifted.kept
        if self._pinned is not None and asked.affinity.matched:
            kept = with_outsider(kept, states, asked, rule, self._pinned)
        if not kept:
            return NoChoice(rule.name, sifted.dropped, sifted.full)
        ranking = ranker.rank(kept, asked.request, asked.affinity)
        best = ranking.best.backend
        return Choice(
            best,
            rule.name,
            upstream_model(best, asked.request.model),
            ranking.candidates + sifted.dropped,
            usable(ranking.best, asked.affinity.matched),
        )


def upstream_model(backend: Backend, requested: str) -> str:
    """The model name to send: the adapter when the backend has one of the requested name, else its own model."""
    return requested if requested in backend.lora_adapters else backend.model_name


def _refused_twice(first: NoChoice, second: NoChoice) -> NoChoice:
    return NoChoice(second.rule, second.candidates, first.full or second.full)
