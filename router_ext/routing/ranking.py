"""From candidates to an order: what each filter removed, and which of the others comes first."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Final

from router_ext.model.affinity import Affinity
from router_ext.model.decision import Candidate
from router_ext.model.request import InferenceRequest
from router_ext.model.rule import Rule
from router_ext.model.snapshot import BackendState
from router_ext.routing.asked import Asked
from router_ext.routing.filters import Filter
from router_ext.routing.filters.availability import Drained, Healthy, Paused, Room, Tried
from router_ext.routing.filters.capabilities import Capabilities, Vision
from router_ext.routing.filters.cost import Cost
from router_ext.routing.filters.lora import LoraAdapter
from router_ext.routing.filters.ttft import TtftSla
from router_ext.routing.scorers import Scorer

PAUSED: Final = Paused()
ROOM: Final = Room()
TTFT_SLA: Final = TtftSla()

NEEDS: Final[tuple[Filter, ...]] = (
    # The only owner of an adapter, or of eyes, is not replaced while it is away: these filters come before those of
    # availability.
    *(Capabilities(), Cost(), LoraAdapter(), Vision()),
    *(Drained(), Healthy(), Tried(), PAUSED, ROOM),
)
"""What a backend must meet in any case."""

FILTERS: Final[tuple[Filter, ...]] = (*NEEDS, TTFT_SLA)
"""Last the limit on latency: what it alone removes could serve."""


@dataclass(frozen=True, slots=True)
class Sifted:
    """What the filters kept, in the order given, and what they removed."""

    kept: Sequence[BackendState]
    dropped: tuple[Candidate, ...]

    def names_dropped_by(self, test: Filter) -> list[str]:
        """The backends that ``test`` removed, in the order given."""
        return [candidate.backend for candidate in self.dropped if candidate.filtered_by == test.name]


def sift(states: Sequence[BackendState], asked: Asked, rule: Rule, filters: Sequence[Filter] = FILTERS) -> Sifted:
    """Takes out the candidates that may not serve the request."""
    kept = states
    dropped: list[Candidate] = []
    for test in filters:
        removed = test.removed(kept, asked, rule) if kept else {}
        if removed:
            dropped.extend(Candidate(name, filtered_by=test.name, reason=reason) for name, reason in removed.items())
            kept = [state for state in kept if state.backend.name not in removed]
    return Sifted(kept, tuple(dropped))


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates, best first, and the record of each one's scores."""

    best: BackendState
    candidates: tuple[Candidate, ...]


class Ranker:
    """An order made of several scorers: the first counts, the next one among its equals."""

    def __init__(self, scorers: Sequence[Scorer]) -> None:
        self._scorers = tuple(scorers)
        self._names = tuple(scorer.name for scorer in scorers)

    def rank(self, states: Sequence[BackendState], request: InferenceRequest, affinity: Affinity) -> Ranking:
        """Ranks ``states``, of which there is at least one. Among full equals the first stays first."""
        columns = [scorer.scores(states, request, affinity) for scorer in self._scorers]
        order = sorted(range(len(states)), key=list(zip(*columns, strict=True)).__getitem__)
        pairs = [zip(repeat(name), column) for name, column in zip(self._names, columns, strict=True)]
        scores = list(zip(*pairs, strict=True))
        candidates = tuple([Candidate(states[i].backend.name, scores=scores[i]) for i in order])
        return Ranking(states[order[0]], candidates)
