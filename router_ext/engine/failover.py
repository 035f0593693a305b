"""From a failed attempt to the next candidate, within the limits."""

from typing import Final

from router_ext.engine.attempts import AttemptEnd, Attempts
from router_ext.engine.caches import Caches
from router_ext.engine.decider import Decider
from router_ext.engine.exchanges import OpenExchange, OpenExchanges
from router_ext.engine.limits import RetryBudget
from router_ext.health.failures import CUT, UNREACHABLE
from router_ext.model.decision import NoChoice
from router_ext.ports import Telemetry

_GONE: Final = frozenset({UNREACHABLE, CUT})
"""Failures after which the backend has the request no more: moving it on leaves the load as it was."""


class Failover:
    """Moves requests on. One that a living backend failed takes a place in the budget until its answer is certain."""

    def __init__(
        self, decider: Decider, attempts: Attempts, caches: Caches, exchanges: OpenExchanges, telemetry: Telemetry
    ) -> None:
        self._decider = decider
        self._attempts = attempts
        self._caches = caches
        self._exchanges = exchanges
        self._telemetry = telemetry
        self._budget = RetryBudget()

    def move(self, exchange: OpenExchange, failed: AttemptEnd, max_attempts: int) -> bool:
        """Ends the present attempt as ``failed`` and begins the next one. False, with nothing changed, when there is no
        other candidate, no attempt left, or no place in the retry budget.
        """
        kept, before = exchange.kept, exchange.attempt.decision
        if kept is None or exchange.attempts >= max_attempts:
            return False
        tried = exchange.tried | {before.backend}
        choice = self._decider.choose(before.request, kept.chain, tried)
        if isinstance(choice, NoChoice):
            return False
        if failed.failure not in _GONE and not self._take_place(exchange):
            self._telemetry.retry_budget_exhausted(before)
            return False
        self._telemetry.failed_over(before, choice.backend.name, failed.failure or "")
        self._attempts.end(exchange.attempt, failed)
        expected = None if kept.chain is None else self._caches.expect(kept.chain, choice.backend, choice.matched)
        exchange.attempt = self._attempts.begin(self._decider.record_next(before, choice), expected)
        exchange.tried, exchange.attempts = tried, exchange.attempts + 1
        return True

    def _take_place(self, exchange: OpenExchange) -> bool:
        exchange.retrying = exchange.retrying or self._budget.take(len(self._exchanges))
        return exchange.retrying

    def settled(self, exchange: OpenExchange) -> None:
        """The request is retried no more: an answer is certain, or it ended."""
        if exchange.retrying:
            exchange.retrying = False
            self._budget.give()
