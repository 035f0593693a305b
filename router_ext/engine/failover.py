"""From a failed attempt to the next candidate, within the limits."""

from typing import Final

from router_ext.engine.attempts import Attempt, AttemptEnd, Attempts
from router_ext.engine.caches import Caches
from router_ext.engine.decider import Decider
from router_ext.engine.exchanges import KeptRequest, OpenExchange, OpenExchanges
from router_ext.engine.limits import RetryBudget
from router_ext.health.failures import CUT, UNREACHABLE
from router_ext.model.decision import Choice, NoChoice
from router_ext.model.money import FALLBACK
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
        other candidate, no attempt left, or no place in the retry budget, and for a request that was downgraded.
        """
        kept, before = exchange.kept, exchange.attempt.decision
        if kept is None or before.downgraded or exchange.attempts >= max_attempts:
            return False
        tried = exchange.tried | {before.backend}
        choice = self._decider.choose_for(exchange.assignment, before.request, kept.chain, tried)
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

    def rescue(
        self, exchange: OpenExchange, kept: KeptRequest, fallback: str, failure: str | None, reason: str
    ) -> bool:
        """Begins an attempt at the quality gate's fallback in place of the present one, which is over. ``failure`` is
        how it failed, None for an answer. False, with nothing changed, when the fallback takes no request now, there is
        no place in the retry budget, or the request was downgraded.
        """
        before = exchange.attempt.decision
        choice = self._fallback_for(exchange, kept, fallback)
        if choice is None:
            return False
        if failure not in _GONE and not self._take_place(exchange):
            self._telemetry.retry_budget_exhausted(before)
            return False
        self.go_on_with(exchange, self._begin_fallback(exchange, kept, choice), reason)
        return True

    def begin_beside(self, exchange: OpenExchange, kept: KeptRequest, fallback: str) -> Attempt | None:
        """Begins an attempt at the fallback beside the present one; None when it takes no request now."""
        choice = self._fallback_for(exchange, kept, fallback)
        if choice is None:
            return None
        exchange.tried |= {fallback}
        return self._begin_fallback(exchange, kept, choice)

    def go_on_with(self, exchange: OpenExchange, attempt: Attempt, reason: str) -> None:
        """``attempt`` takes the place of the present one, which is over."""
        before = exchange.attempt.decision
        self._telemetry.failed_over(before, attempt.decision.backend, reason)
        exchange.tried |= {before.backend}
        exchange.attempt, exchange.attempts = attempt, exchange.attempts + 1

    def _fallback_for(self, exchange: OpenExchange, kept: KeptRequest, fallback: str) -> Choice | None:
        before = exchange.attempt.decision
        if before.downgraded:
            return None
        tried = exchange.tried | {before.backend}
        return self._decider.choose_only(fallback, before.rule, before.request, kept.chain, tried)

    def _begin_fallback(self, exchange: OpenExchange, kept: KeptRequest, choice: Choice) -> Attempt:
        expected = None if kept.chain is None else self._caches.expect(kept.chain, choice.backend, choice.matched)
        decision = self._decider.record_next(exchange.attempt.decision, choice)
        return self._attempts.begin(decision, expected, FALLBACK)

    def _take_place(self, exchange: OpenExchange) -> bool:
        exchange.retrying = exchange.retrying or self._budget.take(len(self._exchanges))
        return exchange.retrying

    def settled(self, exchange: OpenExchange) -> None:
        """The request is retried no more: an answer is certain, or it ended."""
        if exchange.retrying:
            exchange.retrying = False
            self._budget.give()
