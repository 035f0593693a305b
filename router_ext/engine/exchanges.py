"""Requests that were routed and have not ended yet. Each is settled exactly once."""

import math
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from router_ext.config.sections import AbTest
from router_ext.engine.attempts import Attempt, AttemptEnd
from router_ext.engine.gate_ask import GateAsk
from router_ext.engine.turns import OpenTurn
from router_ext.model.decision import Decision
from router_ext.model.experiment import Assignment
from router_ext.model.gate import Quality
from router_ext.model.outcome import Outcome
from router_ext.payload.inference import InferenceBody
from router_ext.payload.prompt import PromptChain
from router_ext.stream.events import RequestHead

MAX_GIVEN_UP: Final = 10_000
"""How many given-up exchanges still wait for a late access log entry."""


@dataclass(frozen=True, slots=True)
class KeptRequest:
    """What it takes to send a request once more."""

    head: RequestHead
    body: InferenceBody = field(repr=False)
    chain: PromptChain | None

    @property
    def size(self) -> int:
        """Bytes of the body."""
        return len(self.body.envelope.raw)


@dataclass(slots=True)
class OpenExchange:
    """One routed request and its present attempt, of which there were ``attempts`` (≥ 1). ``started_at`` is in
    monotonic seconds.

    ``kept`` is there while the request could be sent once more. ``relay_first``: Envoy asks no upstream, the router
    brings the answer from the start. ``tried`` are the backends that failed it. ``relayed``
    is how the router's own last attempt ended, None where Envoy passes the answer on. ``retrying``: it takes a place in
    the retry budget. ``turn`` is the session's, if it is one. ``gate`` is how the quality gate looks at the answer,
    None where it does not; ``quality`` is what it says of it once that is known, ``bad_schema`` that the request's
    schema cannot be used. ``assignment`` is the caller's in an A/B test, None where it takes part in none.
    ``wants_usage``: backends that take it are asked for the token counts of the stream, of which the client is to see
    nothing. ``shadow`` is the test in which its answer is compared with that of another backend, None for none.
    ``first`` is the decision of its first attempt.
    """

    attempt: Attempt
    started_at: float
    kept: KeptRequest | None = None
    relay_first: bool = False
    attempts: int = 1
    tried: frozenset[str] = frozenset()
    relayed: AttemptEnd | None = None
    turn: OpenTurn | None = None
    retrying: bool = False
    gate: GateAsk | None = None
    quality: Quality | None = None
    bad_schema: bool = False
    assignment: Assignment | None = None
    shadow: AbTest | None = None
    wants_usage: bool = False
    first: Decision = field(init=False)

    def __post_init__(self) -> None:
        self.first = self.attempt.decision

    @property
    def id(self) -> str:
        """The decision's id, the same for every attempt."""
        return self.attempt.decision.id

    @property
    def sent_at(self) -> float:
        """When the present attempt began, in monotonic seconds."""
        return self.attempt.started_at

    @property
    def cluster(self) -> str:
        """The Envoy cluster of the present attempt."""
        return self.attempt.slot.state.backend.cluster


class Settled(Struct, frozen=True):
    """An exchange that has ended, and what came of it."""

    exchange: OpenExchange
    outcome: Outcome


class OpenExchanges:
    """The open exchanges by decision id, oldest first, and those that were given up."""

    def __init__(self) -> None:
        self._open: dict[str, OpenExchange] = {}
        self._given_up: OrderedDict[str, OpenExchange] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, exchange: OpenExchange) -> None:
        """Takes it in."""
        self._open[exchange.id] = exchange

    def get(self, decision_id: str) -> OpenExchange | None:
        """The open exchange of a decision, None when it has ended."""
        return self._open.get(decision_id)

    def find(self, decision_id: str) -> OpenExchange | None:
        """The same, also of one that was given up."""
        return self._open.get(decision_id) or self._given_up.get(decision_id)

    def end(self, decision_id: str) -> OpenExchange | None:
        """Takes it out. Returns None when that has happened before: nothing is settled twice."""
        exchange = self._open.pop(decision_id, None)
        return self._given_up.pop(decision_id, None) if exchange is None else exchange

    def clusters(self) -> set[str]:
        """The Envoy clusters that open exchanges use."""
        return {item.cluster for item in self._open.values()}

    def count(self, cluster: str) -> int:
        """How many open exchanges use an Envoy cluster."""
        return sum(item.cluster == cluster and item.attempt.in_flight for item in self._open.values())

    def give_up(self, cluster: str, number: int, sent_by: float = math.inf) -> list[OpenExchange]:
        """Takes out the oldest attempts at a cluster, whose entries seem lost, as far as they were sent until
        ``sent_by``. A late entry still finds them.
        """
        there = [item for item in self._open.values() if item.cluster == cluster and item.attempt.in_flight]
        return self._give_up(sorted((item for item in there if item.sent_at <= sent_by), key=_sent_at)[:number])

    def give_up_over(self, sent_by: float) -> list[OpenExchange]:
        """Takes out those that were sent until ``sent_by`` and are in flight no more: no backend's count shows that
        their entries are lost.
        """
        over = [item for item in self._open.values() if not item.attempt.in_flight and item.sent_at <= sent_by]
        return self._give_up(over)

    def _give_up(self, mine: list[OpenExchange]) -> list[OpenExchange]:
        for exchange in mine:
            del self._open[exchange.id]
            self._given_up[exchange.id] = exchange
        while len(self._given_up) > MAX_GIVEN_UP:
            self._given_up.popitem(last=False)
        return mine


def _sent_at(exchange: OpenExchange) -> float:
    return exchange.sent_at
