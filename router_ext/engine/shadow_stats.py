"""What is known of one test with shadows: counts since it began, figures over its last comparisons."""

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Any, Final

from msgspec import Struct

from router_ext.engine.last_hour import LastHour
from router_ext.health.latency import nearest_rank
from router_ext.model.shadow import Comparison, ShadowResult, VariantAnswer

Json = dict[str, Any]

WINDOW: Final = 1_000
"""Comparisons that figures are made of; the oldest one makes room."""

_HOUR_S: Final = 3_600.0
_DAY_S: Final = 86_400.0
_LEAST_S: Final = 60.0
"""A test that began just now is taken to be this old: one request in its first second is no 86,400 a day."""

_REQUESTS: Final = "requests"


class _Sample(Struct, frozen=True, gc=False):
    """A comparison without its texts. Costs are micro-dollars, None where they are not known."""

    similarity: float
    length_ratio: float | None
    took_s: tuple[float, float]
    cost: tuple[int, int] | None
    valid: tuple[bool, bool] | None


class ShadowStats:
    """One test. Times are monotonic seconds."""

    def __init__(self, now: float) -> None:
        self._since = now
        self._last_hour = LastHour()
        self._results: Counter[ShadowResult] = Counter()
        self._samples: deque[_Sample] = deque(maxlen=WINDOW)

    def request(self, now: float) -> None:
        """Variant A was given a request of the test, with a shadow or without."""
        self._last_hour.add(_REQUESTS, 1, now)

    def ended(self, result: ShadowResult) -> None:
        """One that was drawn for a shadow is over."""
        self._results[result] += 1

    def compared(self, comparison: Comparison) -> None:
        """Both answers were there."""
        self._samples.append(
            _Sample(
                comparison.similarity,
                comparison.length_ratio,
                (comparison.a.took_s, comparison.b.took_s),
                _costs(comparison.a, comparison.b),
                _verdicts(comparison.a, comparison.b),
            )
        )

    def requests_per_day(self, now: float) -> float:
        """How many requests a day has, if all of it is like the last hour, or like the time since the test began."""
        seconds = min(_HOUR_S, max(_LEAST_S, now - self._since))
        return self._last_hour.totals(now).get(_REQUESTS, 0) / seconds * _DAY_S

    def report(self, threshold: float, now: float) -> Json:
        """The figures by name: see ``docs/experiments.md``. None where nothing is known yet."""
        return {
            "results": {result.value: self._results[result] for result in ShadowResult},
            "samples": len(self._samples),
            "similarity": self._similarity(threshold),
            "length_ratio_mean": _mean(item.length_ratio for item in self._samples if item.length_ratio is not None),
            "latency": self._latency(),
            "schema": self._schema(),
            "cost": self._cost(now),
        }

    def _similarity(self, threshold: float) -> Json:
        ascending = sorted(item.similarity for item in self._samples)
        return {
            "mean": _mean(ascending),
            "p10": _rounded(nearest_rank(ascending, 10)) if ascending else None,
            "p50": _rounded(nearest_rank(ascending, 50)) if ascending else None,
            "threshold": threshold,
            "share_alike": _mean(float(value >= threshold) for value in ascending),
        }

    def _latency(self) -> Json:
        a_ms, b_ms = ([item.took_s[at] * 1_000 for item in self._samples] for at in (0, 1))
        delta_ms = [b - a for a, b in zip(a_ms, b_ms, strict=True)]
        return {"a_mean_ms": _mean(a_ms), "b_mean_ms": _mean(b_ms), "delta_mean_ms": _mean(delta_ms)}

    def _schema(self) -> Json:
        verdicts = [item.valid for item in self._samples if item.valid is not None]
        return {
            "samples": len(verdicts),
            "a_valid": sum(a for a, _ in verdicts),
            "b_valid": sum(b for _, b in verdicts),
        }

    def _cost(self, now: float) -> Json:
        costs = [item.cost for item in self._samples if item.cost is not None]
        a_usd, b_usd = (_dollars_of_thousand([cost[at] for cost in costs]) for at in (0, 1))
        per_day = self.requests_per_day(now)
        saving = None if a_usd is None or b_usd is None else _rounded((a_usd - b_usd) / 1_000 * per_day)
        return {
            "samples": len(costs),
            "a_per_1000_usd": _rounded(a_usd),
            "b_per_1000_usd": _rounded(b_usd),
            "requests_per_day": _rounded(per_day),
            "saving_per_day_usd": saving,
        }


def _costs(a: VariantAnswer, b: VariantAnswer) -> tuple[int, int] | None:
    """Those of both, so that both means are of the same requests."""
    if a.cost_micro_usd is None or b.cost_micro_usd is None:
        return None
    return a.cost_micro_usd, b.cost_micro_usd


def _verdicts(a: VariantAnswer, b: VariantAnswer) -> tuple[bool, bool] | None:
    return None if a.valid is None or b.valid is None else (a.valid, b.valid)


def _dollars_of_thousand(micro_usd: Sequence[int]) -> float | None:
    """US dollars of 1,000 requests that cost as much as these."""
    return sum(micro_usd) / len(micro_usd) / 1_000 if micro_usd else None


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return _rounded(sum(known) / len(known)) if known else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
