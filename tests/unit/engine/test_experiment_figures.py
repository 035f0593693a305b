"""What is counted of A/B tests, how it is shown, and what a reload does to it."""

from typing import Any

import pytest

from router_ext.config.sections import AbTest
from router_ext.engine.experiments import Experiments
from router_ext.model.experiment import Assignment, Variant
from router_ext.model.outcome import Outcome, Usage
from router_ext.model.rule import Match
from tests.fakes.clock import FakeClock
from tests.fakes.domain import record
from tests.fakes.telemetry import RecordingTelemetry
from tests.unit.engine.experiments import OF_B, PRICED, experiments, split

# What is counted


def figures(made: Experiments, variant: Variant, test: int = 0) -> dict[str, Any]:
    """One variant's part of the report."""
    shown: dict[str, Any] = made.report()[test]["variants"][variant]
    return shown


def outcome(assignment: Assignment | None = OF_B, failure: str | None = None, **changes: Any) -> Outcome:
    """A good answer after 2 s, its first token after 1 s, with 9 and 1 tokens."""
    ttft_s: float | None = changes.pop("ttft_s", 1.0)
    entry = record("t-1", **changes)
    return Outcome(entry, failure, ttft_s, entry.usage, 1, assignment)


EMPTY: dict[str, Any] = {
    "requests": 0,
    "errors": 0,
    "fallbacks": 0,
    "answers": 0,
    "latency_mean_ms": None,
    "latency_p95_ms": None,
    "ttft_p95_ms": None,
    "usages": 0,
    "output_tokens": 0,
    "cost_micro_usd": 0,
}


def test_a_variant_without_requests_has_no_times() -> None:
    """None, which is not 0."""
    assert figures(experiments(split()), "a") == {"backend": "a", **EMPTY}


def test_statistics_are_those_of_the_variant() -> None:
    """Three answers of B: 2 s, 4 s and 12 s are 6 s in the mean; 10, 20 and no tokens reported at $2 per million."""
    made = experiments(split())
    made.note(PRICED["b"], outcome(duration_s=2.0, ttft_s=0.25, usage=Usage(9, 1)))
    made.note(PRICED["b"], outcome(duration_s=4.0, ttft_s=0.75, usage=Usage(15, 5)))
    made.note(PRICED["b"], outcome(duration_s=12.0, ttft_s=0.5, usage=None))
    assert figures(made, "a") == {"backend": "a", **EMPTY}
    assert figures(made, "b") == {
        "backend": "b",
        "requests": 3,
        "errors": 0,
        "fallbacks": 0,
        "answers": 3,
        "latency_mean_ms": 6_000.0,
        "latency_p95_ms": 12_000.0,
        "ttft_p95_ms": 750.0,
        "usages": 2,
        "output_tokens": 6,
        "cost_micro_usd": 60,
    }


@pytest.mark.parametrize(("count", "p95_ms"), [(1, 1_000.0), (19, 19_000.0), (20, 19_000.0), (21, 20_000.0)])
def test_percentiles_are_those_of_the_nearest_rank(count: int, p95_ms: float) -> None:
    """1 s, 2 s, 3 s …: the value at position ceil(0.95 n)."""
    made = experiments(split())
    for number in range(count, 0, -1):
        made.note(PRICED["b"], outcome(duration_s=float(number), ttft_s=float(number)))
    assert (figures(made, "b")["latency_p95_ms"], figures(made, "b")["ttft_p95_ms"]) == (p95_ms, p95_ms)


def test_percentiles_are_those_of_the_last_1000_answers_and_the_mean_is_that_of_all() -> None:
    """51 slow ones of 1,000 are the slowest 5 % and one more; the answer after that drops the first of them."""
    made = experiments(split())
    for duration_s in [9.0] * 51 + [1.0] * 949:
        made.note(PRICED["b"], outcome(duration_s=duration_s, ttft_s=duration_s))
    assert (figures(made, "b")["latency_p95_ms"], figures(made, "b")["ttft_p95_ms"]) == (9_000.0, 9_000.0)
    made.note(PRICED["b"], outcome(duration_s=1.0, ttft_s=1.0))
    assert (figures(made, "b")["latency_p95_ms"], figures(made, "b")["ttft_p95_ms"]) == (1_000.0, 1_000.0)
    # (51 * 9 + 950 * 1) / 1001 s
    assert figures(made, "b")["latency_mean_ms"] == 1_407.592


@pytest.mark.parametrize(
    ("failure", "status", "errors", "answers"),
    [
        (None, 200, 0, 1),
        (None, 302, 0, 1),
        (None, 400, 0, 0),
        (None, 429, 1, 0),
        ("upstream_5xx", 503, 1, 0),
        ("stream_truncated", 200, 1, 0),
        ("quality_gate_failed", 200, 1, 0),
        ("client_left", 200, 0, 0),
        ("router_fault", 503, 0, 0),
    ],
)
def test_an_end_is_an_error_an_answer_or_neither(failure: str | None, status: int, errors: int, answers: int) -> None:
    """A bad request, a client that left and a bug of the router say nothing of the variant. Tokens are paid anyway."""
    made = experiments(split())
    made.note(PRICED["b"], outcome(failure=failure, status=status))
    shown = figures(made, "b")
    assert (shown["requests"], shown["errors"], shown["answers"]) == (1, errors, answers)
    assert (shown["usages"], shown["cost_micro_usd"]) == (1, 20)
    assert (shown["latency_p95_ms"] is None) == (answers == 0)


def test_an_answer_without_a_token_has_no_time_to_the_first() -> None:
    """But a duration."""
    made = experiments(split())
    made.note(PRICED["b"], outcome(ttft_s=None))
    assert (figures(made, "b")["latency_p95_ms"], figures(made, "b")["ttft_p95_ms"]) == (2_000.0, None)


def test_a_request_that_fell_back_is_counted_and_kept_out_of_all_statistics() -> None:
    """Of its own variant, and of that which answered: their callers are not those of a fair draw."""
    made = experiments(split())
    made.note(PRICED["a"], outcome(OF_B.given_to("a")))
    made.note(PRICED["b"], outcome(OF_B.given_to("c")))
    assert figures(made, "a") == {"backend": "a", **EMPTY}
    assert figures(made, "b") == {"backend": "b", **EMPTY, "fallbacks": 2}


def test_a_request_that_the_variant_failed_is_its_error_whoever_answered() -> None:
    """Else failover made a bad backend look good. The other one's times, tokens and cost are not counted for either."""
    made = experiments(split())
    made.note(PRICED["a"], outcome())
    assert figures(made, "a") == {"backend": "a", **EMPTY}
    assert figures(made, "b") == {"backend": "b", **EMPTY, "requests": 1, "errors": 1}


def test_telemetry_hears_of_each_request_of_a_test() -> None:
    """With the caller's variant; of other requests it does not."""
    telemetry = RecordingTelemetry()
    made = Experiments(telemetry, FakeClock())
    made.configure([split()])
    made.note(PRICED["b"], outcome())
    made.note(PRICED["a"], outcome(OF_B.given_to("a")))
    made.note(PRICED["a"], outcome(None))
    assert telemetry.ab_requests == [("cheaper", "b", False), ("cheaper", "b", True)]


# The report, and what a reload does to it


def test_the_report_shows_every_test_as_it_is_configured() -> None:
    """With the conditions that are set; statistics, and since when they are, only where the traffic is split."""
    made = experiments(
        split(match=Match(service="shop", tier=2), split_pct=10.0, active=False), split("look", mode="shadow")
    )
    assert made.report() == [
        {
            "name": "cheaper",
            "mode": "split",
            "active": False,
            "match": {"service": "shop", "tier": 2},
            "split_pct": 10.0,
            "since": "2023-11-14T22:13:20.000Z",
            "variants": {"a": {"backend": "a", **EMPTY}, "b": {"backend": "b", **EMPTY}},
        },
        {
            "name": "look",
            "mode": "shadow",
            "active": True,
            "match": {},
            "split_pct": 50.0,
            "variants": {"a": {"backend": "a"}, "b": {"backend": "b"}},
        },
    ]


def reloaded(*tests: AbTest) -> list[tuple[str, int, str]]:
    """Names, requests of B and beginnings after an answer of B, a minute, and these tests in place of ``cheaper``."""
    clock = FakeClock()
    made = Experiments(RecordingTelemetry(), clock)
    made.configure([split()])
    made.note(PRICED["b"], outcome())
    clock.advance(60.0)
    made.configure(tests)
    return [(item["name"], item["variants"]["b"]["requests"], item["since"]) for item in made.report()]


OLD, NEW = "2023-11-14T22:13:20.000Z", "2023-11-14T22:14:20.000Z"


def test_a_test_with_the_same_name_and_variants_goes_on_after_a_reload() -> None:
    """Beside a new one, with another share, other callers, or stopped."""
    kept = split(match=Match(service="shop"), split_pct=90.0, active=False)
    assert reloaded(split("new"), kept) == [("new", 0, NEW), ("cheaper", 1, OLD)]


@pytest.mark.parametrize(
    "changed",
    [split("other"), split(variant_a="c"), split(variant_b="c"), split(variant_a="b", variant_b="a")],
)
def test_a_test_with_another_name_or_variant_begins_anew(changed: AbTest) -> None:
    """Its figures would be those of two different things."""
    assert reloaded(changed) == [(changed.name, 0, NEW)]


def test_what_ends_after_its_test_is_gone_is_in_no_statistics() -> None:
    """Nor in those of a test that has its name and other variants now."""
    made = experiments(split())
    made.configure([split(variant_a="c")])
    made.note(PRICED["b"], outcome())
    assert figures(made, "b")["requests"] == 0
    made.configure([])
    made.note(PRICED["b"], outcome())
    assert made.report() == []
