"""The decision: rule, then filters, then scorers, then the best candidate."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from router_ext.model.affinity import Balancing
from router_ext.model.backend import Backend
from router_ext.model.decision import Candidate, Choice, NoChoice
from router_ext.model.rule import Rule
from router_ext.model.snapshot import BackendState, Snapshot
from router_ext.routing.asked import Asked
from router_ext.routing.filters import Filter
from router_ext.routing.outsiders import with_outsider
from router_ext.routing.probes import to_probe
from router_ext.routing.ranking import FILTERS, NEEDS, PAUSED, ROOM, TTFT_SLA, Ranker, Sifted, sift
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

    def route(self, asked: Asked) -> Choice | NoChoice:
        """Chooses a backend.

        The matching rule's backends are tried first. When none of them can take the request, the fallback chain's
        other backends are, still under the rule's conditions, and not in place of one that is away and alone has the
        requested adapter or sees images. Where only the rule's ``max_ttft_ms`` left nobody, it counts no more.
        """
        rankers = self._plain if asked.affinity is NO_AFFINITY else self._affine
        rule = self._table.first_match(asked.request)
        if rule is None:
            return self._choose(self._default, self._chain, asked, rankers.chain)
        choice = self._choose(rule, rule.backends, asked, rankers.rule)
        if isinstance(choice, NoChoice):
            choice = self._continue(choice, rule, asked, rankers.chain)
        if isinstance(choice, NoChoice) and rule.max_ttft_ms:
            return self._despite_sla(rule, asked, rankers.chain) or choice
        return choice

    def only(self, backend: str, rule: str, asked: Asked) -> Choice | NoChoice:
        """This backend or none, whatever rules and pins say; the record names ``rule``."""
        named = Rule(name=rule, backends=(backend,))
        states = [asked.snapshot[backend]] if backend in asked.snapshot else []
        sifted = sift(states, asked, named, NEEDS)
        if not sifted.kept:
            return _refused(named, sifted, asked)
        ranking = self._plain.rule.rank(sifted.kept, asked.request, asked.affinity)
        return _chosen(ranking.best, ranking.candidates, named, asked)

    def first_available(self, snapshot: Snapshot) -> Backend | None:
        """The first backend of the fallback chain that is not down or drained, for requests that are no inference."""
        states = (snapshot[name] for name in self._chain if name in snapshot)
        return next((state.backend for state in states if state.takes_requests), None)

    def _continue(self, first: NoChoice, rule: Rule, asked: Asked, ranker: Ranker) -> Choice | NoChoice:
        """The fallback chain for a rule whose own backends cannot serve."""
        rest = [name for name in self._chain if name not in rule.backends]
        if not rest:
            return first
        # The rule's own backends stay in view: one that is away may be the only owner of the adapter.
        second = self._choose(rule, (*rule.backends, *rest), asked, ranker)
        return second if isinstance(second, Choice) else _refused_twice(first, second)

    def _despite_sla(self, rule: Rule, asked: Asked, ranker: Ranker) -> Choice | None:
        """Anybody who would do but for ``max_ttft_ms``, the fallback chain first; None when nobody would."""
        own = [name for name in rule.backends if name not in self._chain]
        # An owner of the adapter in the chain hides the rule's own backends, which could serve if they were fast.
        for names in ((*self._chain, *own), rule.backends):
            choice = self._choose(rule, names, asked, ranker, NEEDS)
            if isinstance(choice, Choice):
                slow = tuple(item.backend for item in choice.candidates if not item.filtered_by)
                return replace(choice, too_slow=slow, sla_missed=True)
        return None

    def _choose(
        self, rule: Rule, names: Sequence[str], asked: Asked, ranker: Ranker, filters: Sequence[Filter] = FILTERS
    ) -> Choice | NoChoice:
        states = [asked.snapshot[name] for name in names if name in asked.snapshot]
        sifted = sift(states, asked, rule, filters)
        kept = sifted.kept
        if self._pinned is not None and asked.affinity.matched:
            # A limit that was given up is given up for the pin, too, but only where nobody else can serve.
            needed = FILTERS if kept else filters
            kept = with_outsider(kept, states, asked, rule, self._pinned, filters=needed)
        if not kept:
            return _refused(rule, sifted, asked)
        probe = to_probe(sifted, asked)
        if probe is not None:
            ranking = ranker.rank([*kept, probe], asked.request, asked.affinity)
            return _probing(probe, ranking.candidates, sifted.dropped, rule, asked)
        ranking = ranker.rank(kept, asked.request, asked.affinity)
        return _chosen(ranking.best, ranking.candidates + sifted.dropped, rule, asked)


def upstream_model(backend: Backend, requested: str) -> str:
    """The model name to send: the adapter when the backend has one of the requested name, else its own model."""
    return requested if requested in backend.lora_adapters else backend.model_name


def _chosen(state: BackendState, candidates: tuple[Candidate, ...], rule: Rule, asked: Asked) -> Choice:
    backend = state.backend
    return Choice(
        backend,
        rule.name,
        upstream_model(backend, asked.request.model),
        candidates,
        usable(state, asked.affinity.matched),
        tuple([item.backend for item in candidates if item.filtered_by == TTFT_SLA.name]) if rule.max_ttft_ms else (),
        asked=asked,
    )


def _probing(
    slow: BackendState, ranked: Sequence[Candidate], dropped: Sequence[Candidate], rule: Rule, asked: Asked
) -> Choice:
    """The slow backend serves, in front of those that rank before it. Its record keeps the reason against it."""
    name = slow.backend.name
    reason = next(item.reason for item in dropped if item.backend == name)
    first = next(item for item in ranked if item.backend == name)
    others = [item for item in (*ranked, *dropped) if item.backend != name]
    return _chosen(slow, (replace(first, reason=f"probe: {reason}"), *others), rule, asked)


def _refused(rule: Rule, sifted: Sifted, asked: Asked) -> NoChoice:
    pauses = [asked.snapshot[name].paused_until for name in sifted.names_dropped_by(PAUSED)]
    full = bool(sifted.names_dropped_by(ROOM))
    return NoChoice(rule.name, sifted.dropped, full, min(pauses, default=None), asked)


def _refused_twice(first: NoChoice, second: NoChoice) -> NoChoice:
    pauses = [choice.paused_until for choice in (first, second) if choice.paused_until is not None]
    full = first.full or second.full
    return NoChoice(second.rule, second.candidates, full, min(pauses, default=None), second.asked)
