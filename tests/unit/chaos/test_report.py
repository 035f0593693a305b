"""From results and metrics to figures."""

from typing import Any

import pytest

from benchmarks.chaos.client import Result
from benchmarks.chaos.report import RouterPage, failure_lines, passed, summary

PAGE = """\
# HELP kronaxis_router_failovers_total Requests that went on.
# TYPE kronaxis_router_failovers_total counter
kronaxis_router_failovers_total{from="a",to="b",reason="upstream_unreachable"} 2.0
kronaxis_router_failovers_total{from="b",to="c",reason="upstream_5xx"} 5.0
# HELP kronaxis_router_circuit_trips_total Trips.
# TYPE kronaxis_router_circuit_trips_total counter
kronaxis_router_circuit_trips_total{backend="a"} 0.0
kronaxis_router_circuit_trips_total{backend="b"} 3.0
# HELP kronaxis_router_retry_budget_exhausted_total Not retried.
# TYPE kronaxis_router_retry_budget_exhausted_total counter
kronaxis_router_retry_budget_exhausted_total 4.0
# HELP kronaxis_router_backend_active_requests In flight.
# TYPE kronaxis_router_backend_active_requests gauge
kronaxis_router_backend_active_requests{backend="a"} 1.0
kronaxis_router_backend_active_requests{backend="b"} 2.0
"""
EMPTY = RouterPage(())


def good(latency_s: float = 0.01, *, attempts: int = 1, backend: str = "a") -> Result:
    """A good plain answer."""
    return Result(0.0, False, latency_s, None, backend, attempts)


def bad(at_s: float, failure: str = "no [DONE]") -> Result:
    """A failed stream."""
    return Result(at_s, True, 0.5, failure, "a")


def test_requests_failures_and_moves_are_counted() -> None:
    """A move is an answer for which more than one backend was asked."""
    figures = summary([good(), good(attempts=2), good(attempts=3), bad(1.0)], EMPTY)
    assert (figures["requests"], figures["failed"], figures["moved"], figures["streamed"]) == (4, 1, 2, 1)


def test_good_answers_without_a_backend_are_unrouted() -> None:
    """Envoy fetched them alone."""
    figures = summary([good(), good(backend=""), Result(0.0, False, 0.1, "status 503")], EMPTY)
    assert (figures["unrouted"], figures["answered_by"]) == (1, {"-": 2, "a": 1})


def test_latencies_are_those_of_good_answers() -> None:
    """A failure that comes at once is no fast answer."""
    figures = summary([good(number / 100) for number in range(1, 101)] + [bad(0.0)], EMPTY)
    assert (figures["p50_s"], figures["p95_s"], figures["max_s"]) == (0.51, 0.96, 1.0)


def test_without_a_good_answer_there_are_no_latencies() -> None:
    """Nothing is made up."""
    figures = summary([bad(0.0)], EMPTY)
    assert (figures["p50_s"], figures["p95_s"], figures["max_s"]) == (None, None, None)


def test_the_routers_metrics_are_part_of_the_figures() -> None:
    """Failovers most frequent first, trips only where there were some."""
    figures = summary([good()], RouterPage.read(PAGE))
    assert figures["failovers"] == [
        {"from": "b", "to": "c", "reason": "upstream_5xx", "count": 5},
        {"from": "a", "to": "b", "reason": "upstream_unreachable", "count": 2},
    ]
    assert (figures["trips"], figures["retry_budget_exhausted"], figures["in_flight_after"]) == ({"b": 3}, 4, 3)


@pytest.mark.parametrize(
    ("figures", "good_run"),
    [
        ({"failed": 0, "in_flight_after": 0}, True),
        ({"failed": 1, "in_flight_after": 0}, False),
        ({"failed": 0, "in_flight_after": 1}, False),
    ],
)
def test_a_run_passes_when_nothing_failed_and_nothing_leaked(figures: dict[str, Any], good_run: bool) -> None:
    """A request that stays counted takes room for ever."""
    assert passed(figures) is good_run


def test_a_failure_is_told_with_its_time_kind_and_cause() -> None:
    """Enough to find it in the logs."""
    assert failure_lines([good(), bad(5.04)]) == ["   5.04 s  stream after 0.500 s, backend a, attempts 1: no [DONE]"]


@pytest.mark.parametrize(("failures", "last"), [(10, "backend a, attempts 1: no [DONE]"), (11, "and 1 more")])
def test_ten_failures_are_shown_and_the_rest_is_counted(failures: int, last: str) -> None:
    """The earliest ones."""
    lines = failure_lines([bad(float(number)) for number in reversed(range(failures))])
    assert lines[0].startswith("   0.00 s")
    assert lines[9].startswith("   9.00 s")
    assert lines[-1].endswith(last)
