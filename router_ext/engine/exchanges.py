"""Requests that were routed and have not ended yet. Each is settled exactly once."""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from router_ext.engine.caches import Expected
from router_ext.engine.pool import Slot
from router_ext.model.decision import Decision

MAX_GIVEN_UP: Final = 10_000
"""How many given-up exchanges still wait for a late access log entry."""


@dataclass(slots=True)
class OpenExchange:
    """One routed request. Times are monotonic seconds; ``first_token_at`` stays None without a streamed token.

    ``expected`` is None where no cache is looked at.
    """

    decision: Decision
    slot: Slot
    started_at: float
    expected: Expected | None = None
    first_token_at: float | None = None

    @property
    def ttft_s(self) -> float | None:
        """Seconds from the request to its first streamed token."""
        return None if self.first_token_at is None else self.first_token_at - self.started_at


class OpenExchanges:
    """The open exchanges by decision id, oldest first, and those that were given up."""

    def __init__(self) -> None:
        self._open: dict[str, OpenExchange] = {}
        self._given_up: OrderedDict[str, OpenExchange] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, exchange: OpenExchange) -> None:
        """Counts the request in its backend."""
        self._open[exchange.decision.id] = exchange
        exchange.slot.acquire()

    def get(self, decision_id: str) -> OpenExchange | None:
        """The open exchange of a decision, None when it has ended."""
        return self._open.get(decision_id)

    def end(self, decision_id: str) -> OpenExchange | None:
        """Releases the request from its backend. Returns None when it has ended before: nothing is settled twice."""
        exchange = self._open.pop(decision_id, None)
        if exchange is None:
            return self._given_up.pop(decision_id, None)
        exchange.slot.release()
        return exchange

    def clusters(self) -> set[str]:
        """The Envoy clusters that open exchanges use."""
        return {item.slot.state.backend.cluster for item in self._open.values()}

    def count(self, cluster: str) -> int:
        """How many open exchanges use an Envoy cluster."""
        return sum(item.slot.state.backend.cluster == cluster for item in self._open.values())

    def give_up(self, cluster: str, number: int) -> list[OpenExchange]:
        """Releases the oldest exchanges of a cluster, whose entries seem lost. A late entry still finds them."""
        mine = [item for item in self._open.values() if item.slot.state.backend.cluster == cluster][:number]
        for exchange in mine:
            del self._open[exchange.decision.id]
            exchange.slot.release()
            self._given_up[exchange.decision.id] = exchange
        while len(self._given_up) > MAX_GIVEN_UP:
            self._given_up.popitem(last=False)
        return mine
