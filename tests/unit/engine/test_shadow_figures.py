"""The figures of a test with shadows, counted by hand."""

import pytest

from router_ext.engine.shadow_stats import WINDOW, ShadowStats
from router_ext.model.shadow import Comparison, ShadowResult, VariantAnswer

T0 = 1_000.0


def comparison(
    similarity: float = 1.0,
    ratio: float | None = 1.0,
    took_s: tuple[float, float] = (1.0, 1.0),
    cost: tuple[int | None, int | None] = (None, None),
    valid: tuple[bool | None, bool | None] = (None, None),
) -> Comparison:
    """Two answers."""
    a, b = (VariantAnswer(name, "", took_s[at], None, cost[at], valid[at]) for at, name in enumerate(("a", "b")))
    return Comparison("t", "d-1", 0.0, a, b, similarity, ratio)


def stats(*comparisons: Comparison) -> ShadowStats:
    """Of these answers."""
    made = ShadowStats(T0)
    for item in comparisons:
        made.compared(item)
    return made


def test_nothing_is_known_without_a_comparison() -> None:
    """No figure is a silent 0."""
    assert ShadowStats(T0).report(0.8, T0) == {
        "results": {"compared": 0, "unreadable": 0, "failed": 0, "skipped": 0, "no_primary": 0, "dropped": 0},
        "samples": 0,
        "similarity": {"mean": None, "p10": None, "p50": None, "threshold": 0.8, "share_alike": None},
        "length_ratio_mean": None,
        "latency": {"a_mean_ms": None, "b_mean_ms": None, "delta_mean_ms": None},
        "schema": {"samples": 0, "a_valid": 0, "b_valid": 0},
        "cost": {
            "samples": 0,
            "a_per_1000_usd": None,
            "b_per_1000_usd": None,
            "requests_per_day": 0.0,
            "saving_per_day_usd": None,
        },
    }


def test_similarity_has_mean_nearest_ranks_and_the_share_of_alike_answers() -> None:
    """0.0 to 0.9 in tenths: P10 is the first, P50 the fifth; 0.8 itself counts as alike."""
    report = stats(*(comparison(number / 10) for number in reversed(range(10)))).report(0.8, T0)
    assert report["similarity"] == {"mean": 0.45, "p10": 0.0, "p50": 0.4, "threshold": 0.8, "share_alike": 0.2}


def test_figures_are_those_of_the_last_thousand() -> None:
    """The first makes room for one more."""
    made = stats(comparison(0.0), *(comparison(1.0) for _ in range(WINDOW - 1)))
    assert made.report(0.8, T0)["similarity"]["mean"] == 0.999
    made.compared(comparison(1.0))
    report = made.report(0.8, T0)
    assert (WINDOW, report["samples"], report["similarity"]["mean"]) == (1_000, 1_000, 1.0)


def test_ratios_latencies_and_schemas_are_means_and_counts_of_what_is_known() -> None:
    """A takes 1 s and 2 s, B half a second more, then as long."""
    report = stats(
        comparison(ratio=0.5, took_s=(1.0, 1.5), valid=(True, False)), comparison(ratio=None, took_s=(2.0, 2.0))
    ).report(0.8, T0)
    assert report["length_ratio_mean"] == 0.5
    assert report["latency"] == {"a_mean_ms": 1500.0, "b_mean_ms": 1750.0, "delta_mean_ms": 250.0}
    assert report["schema"] == {"samples": 1, "a_valid": 1, "b_valid": 0}


def test_the_saving_of_a_day_is_that_of_a_request_times_the_requests_of_the_last_hour() -> None:
    """A 300 and B 100 micro-dollars a request: 0.30 and 0.10 dollars a thousand. 36 requests an hour are 864 a day."""
    made = stats(comparison(cost=(200, 50)), comparison(cost=(400, 150)), comparison(cost=(10_000, None)))
    now = T0 + 7_200
    for _ in range(36):
        made.request(now)
    assert made.report(0.8, now)["cost"] == {
        "samples": 2,
        "a_per_1000_usd": 0.3,
        "b_per_1000_usd": 0.1,
        "requests_per_day": 864.0,
        "saving_per_day_usd": 0.1728,
    }


@pytest.mark.parametrize(("age_s", "per_day"), [(0, 14_400), (60, 14_400), (120, 7_200), (3_600, 240), (7_200, 240)])
def test_a_young_test_is_taken_by_its_age_and_no_younger_than_a_minute(age_s: int, per_day: int) -> None:
    """Ten requests just now."""
    made = ShadowStats(T0)
    for _ in range(10):
        made.request(T0 + age_s)
    assert made.requests_per_day(T0 + age_s) == pytest.approx(per_day)


def test_a_dearer_variant_b_saves_less_than_nothing() -> None:
    """The sign says so."""
    made = stats(comparison(cost=(100, 200)))
    for _ in range(1_000):
        made.request(T0 + 3_600)
    assert made.report(0.8, T0 + 3_600)["cost"]["saving_per_day_usd"] == pytest.approx(-2.4)


def test_results_are_counted_by_name() -> None:
    """All of them, since the test began."""
    made = ShadowStats(T0)
    for result in (ShadowResult.COMPARED, ShadowResult.DROPPED, ShadowResult.DROPPED):
        made.ended(result)
    results = made.report(0.8, T0)["results"]
    assert (results["compared"], results["dropped"], results["failed"]) == (1, 2, 0)
