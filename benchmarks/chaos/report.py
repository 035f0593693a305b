"""Results and the router's metrics, as figures."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from benchmarks.chaos.client import Result
from benchmarks.load import quantile

SHOWN_FAILURES: Final = 10

_PREFIX: Final = "kronaxis_router_"


@dataclass(frozen=True, slots=True)
class RouterPage:
    """The samples of the router's metrics page."""

    samples: tuple[Sample, ...]

    @classmethod
    def read(cls, text: str) -> "RouterPage":
        """Reads Prometheus text."""
        families = text_string_to_metric_families(text)
        return cls(tuple(sample for family in families for sample in family.samples))

    def total(self, name: str) -> int:
        """The sum over all labels of a metric, whose name lacks the prefix; 0 when there is none."""
        return int(sum(sample.value for sample in self._named(name)))

    def by_label(self, name: str, label: str) -> dict[str, int]:
        """What is not 0 of a metric, by the value of one label."""
        return {sample.labels[label]: int(sample.value) for sample in self._named(name) if sample.value}

    @property
    def failovers(self) -> list[dict[str, Any]]:
        """How often a request went ``from`` one backend ``to`` another, for which ``reason``; most frequent first."""
        rows = [{**sample.labels, "count": int(sample.value)} for sample in self._named("failovers_total")]
        return sorted(rows, key=lambda row: -row["count"])

    @property
    def in_flight(self) -> int:
        """Requests that the router counts as open."""
        return self.total("backend_active_requests")

    def _named(self, name: str) -> Iterator[Sample]:
        return (sample for sample in self.samples if sample.name == _PREFIX + name)


def summary(results: Sequence[Result], page: RouterPage) -> dict[str, Any]:
    """The figures of a run. ``moved`` counts answers of requests that more than one backend was asked for, ``unrouted``
    good answers that Envoy fetched without the router.

    Latencies are seconds, over good answers only: those of failed requests may be short.
    """
    good = sorted(result.latency_s for result in results if result.failure is None)
    return {
        "requests": len(results),
        "failed": len(results) - len(good),
        "moved": sum(result.attempts > 1 for result in results),
        "streamed": sum(result.stream for result in results),
        "answered_by": dict(sorted(Counter(result.backend or "-" for result in results).items())),
        "unrouted": sum(result.failure is None and not result.backend for result in results),
        **_latencies(good),
        "failovers": page.failovers,
        "trips": page.by_label("circuit_trips_total", "backend"),
        "retry_budget_exhausted": page.total("retry_budget_exhausted_total"),
        "access_log_lost": page.total("access_log_lost_total"),
        "router_faults": page.total("faults_total"),
        "in_flight_after": page.in_flight,
    }


def _latencies(ascending: list[float]) -> dict[str, float | None]:
    quantiles = {"p50_s": 0.5, "p95_s": 0.95, "max_s": 1.0}
    return {name: round(quantile(ascending, q), 4) if ascending else None for name, q in quantiles.items()}


def passed(figures: dict[str, Any]) -> bool:
    """True when no request failed and the router counts none as open."""
    return (figures["failed"], figures["in_flight_after"]) == (0, 0)


def failure_lines(results: Sequence[Result]) -> list[str]:
    """The first failed requests in order of time, and how many more there are."""
    failed = sorted((result for result in results if result.failure is not None), key=lambda result: result.at_s)
    lines = [_failure_line(result) for result in failed[:SHOWN_FAILURES]]
    more = len(failed) - len(lines)
    return [*lines, f"and {more} more"] if more else lines


def _failure_line(result: Result) -> str:
    kind = "stream" if result.stream else "plain"
    whose = f"backend {result.backend or '-'}, attempts {result.attempts}"
    return f"{result.at_s:7.2f} s  {kind:<6} after {result.latency_s:.3f} s, {whose}: {result.failure}"
