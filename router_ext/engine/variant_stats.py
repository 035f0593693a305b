"""What is known of one variant of an A/B test: sums since its statistics began, percentiles over its last answers."""

from collections import deque
from typing import Final

from router_ext.health.failures import CLIENT_LEFT, ROUTER_FAULT
from router_ext.health.latency import nearest_rank
from router_ext.model.outcome import Outcome

WINDOW: Final = 1_000
"""Answers that percentiles are made of; the oldest one makes room."""

_NOT_THE_VARIANTS: Final = frozenset({None, CLIENT_LEFT, ROUTER_FAULT})
"""Ends that say nothing against a variant. Another backend's answer in place of a bad one hides nothing."""


class VariantStats:
    """One variant. Each request is told of by one of the three calls."""

    def __init__(self) -> None:
        self._requests = 0
        self._errors = 0
        self._fallbacks = 0
        self._answers = 0
        self._duration_s = 0.0
        self._durations_s: deque[float] = deque(maxlen=WINDOW)
        self._ttfts_s: deque[float] = deque(maxlen=WINDOW)
        self._usages = 0
        self._output_tokens = 0
        self._cost_micro_usd = 0

    def fell_back(self) -> None:
        """The variant could not take it, and nothing else of the request is counted."""
        self._fallbacks += 1

    def moved_on(self) -> None:
        """The variant was asked and failed: another backend answered."""
        self._requests += 1
        self._errors += 1

    def ended(self, outcome: Outcome, cost_micro_usd: int) -> None:
        """The variant was the last to be asked. Times count for good answers only, tokens and cost for all."""
        self._requests += 1
        if outcome.failure not in _NOT_THE_VARIANTS or outcome.record.status == 429:
            self._errors += 1
        elif outcome.failure is None and 200 <= outcome.record.status < 400:
            self._answered(outcome)
        if outcome.usage is not None:
            self._usages += 1
            self._output_tokens += max(0, outcome.usage.completion_tokens)
            self._cost_micro_usd += cost_micro_usd

    def _answered(self, outcome: Outcome) -> None:
        self._answers += 1
        self._duration_s += outcome.record.duration_s
        self._durations_s.append(outcome.record.duration_s)
        if outcome.ttft_s is not None:
            self._ttfts_s.append(outcome.ttft_s)

    def report(self) -> dict[str, int | float | None]:
        """The statistics by name. Times are milliseconds with three decimals, None without an answer."""
        return {
            "requests": self._requests,
            "errors": self._errors,
            "fallbacks": self._fallbacks,
            "answers": self._answers,
            "latency_mean_ms": _ms(self._duration_s / self._answers) if self._answers else None,
            "latency_p95_ms": _p95_ms(self._durations_s),
            "ttft_p95_ms": _p95_ms(self._ttfts_s),
            "usages": self._usages,
            "output_tokens": self._output_tokens,
            "cost_micro_usd": self._cost_micro_usd,
        }


def _p95_ms(seconds: deque[float]) -> float | None:
    return _ms(nearest_rank(sorted(seconds), 95)) if seconds else None


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
