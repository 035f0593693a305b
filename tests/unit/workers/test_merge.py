"""One answer out of those of all workers."""

from typing import Any

from router_ext.workers.merge import merged_ab_tests, merged_budgets, merged_decisions, merged_gauges, merged_health
from router_ext.workers.merge_shadow import merged_shadow


def backend(name: str, health: str, *, tripped: bool = False, drained: bool = False, active: int = 0) -> dict[str, Any]:
    """A backend as a worker tells of it."""
    return {"name": name, "health": health, "circuit_open": tripped, "drained": drained, "active_requests": active}


def health(status: str, *backends: dict[str, Any]) -> dict[str, Any]:
    """A worker's answer."""
    return {"status": status, "backends": list(backends)}


def test_a_backend_is_as_well_as_the_worker_says_that_thinks_worst_of_it() -> None:
    """An operator looks for what is wrong; requests are counted by every worker for all of them."""
    merged = merged_health(
        [
            health("ok", backend("a", "healthy", active=3), backend("b", "degraded")),
            health("ok", backend("a", "down", tripped=True, active=4), backend("b", "healthy", active=1)),
        ]
    )
    assert merged["backends"] == [backend("a", "down", tripped=True, active=4), backend("b", "degraded", active=1)]


def test_a_backend_is_drained_as_soon_as_one_worker_knows() -> None:
    """A change reaches the workers one after the other."""
    merged = merged_health([health("ok", backend("a", "healthy")), health("ok", backend("a", "healthy", drained=True))])
    assert merged["backends"] == [backend("a", "healthy", drained=True)]


def test_the_router_is_well_while_one_worker_has_a_backend() -> None:
    """Without a worker that answers it says so."""
    assert merged_health([health("no_backend"), health("ok")])["status"] == "ok"
    assert merged_health([health("no_backend"), health("no_backend")])["status"] == "no_backend"
    assert merged_health([])["status"] == "no_worker"


def test_a_backend_that_one_worker_does_not_know_yet_is_shown() -> None:
    """A reload reaches the workers one after the other."""
    merged = merged_health([health("ok"), health("ok", backend("new", "down"))])
    assert merged["backends"] == [backend("new", "down")]


def test_decisions_are_the_newest_of_all_workers_in_order() -> None:
    """Each worker tells its own newest first; what is older than the limit allows is left out."""
    one = [{"id": "w0-2", "time": "2026-01-01T00:00:03Z"}, {"id": "w0-1", "time": "2026-01-01T00:00:01Z"}]
    other = [{"id": "w1-1", "time": "2026-01-01T00:00:02Z"}]
    assert [item["id"] for item in merged_decisions([one, other, []], 2)] == ["w0-2", "w1-1"]
    assert [item["id"] for item in merged_decisions([one, other], 9)] == ["w0-2", "w1-1", "w0-1"]


def test_the_precision_of_a_time_does_not_change_the_order() -> None:
    """A JSON timestamp has no fraction, or three, six or nine digits of it."""
    one = [{"id": "late", "time": "2026-01-01T00:00:01.500Z"}]
    other = [{"id": "early", "time": "2026-01-01T00:00:01Z"}]
    assert [item["id"] for item in merged_decisions([other, one], 9)] == ["late", "early"]


def variant(backend: str, requests: int, **figures: Any) -> dict[str, Any]:
    """A variant without an answer unless told otherwise, as a worker tells of it."""
    times = {"latency_mean_ms": None, "latency_p95_ms": None, "ttft_p95_ms": None}
    counts = dict.fromkeys(("errors", "fallbacks", "answers", "usages", "output_tokens", "cost_micro_usd"), 0)
    return {"backend": backend, "requests": requests, **counts, **times, **figures}


def ab_test(name: str, a: dict[str, Any], b: dict[str, Any], since: str = "2026-01-01T00:00:00.000Z") -> dict[str, Any]:
    """A test as a worker tells of it."""
    return {"name": name, "mode": "split", "split_pct": 10.0, "since": since, "variants": {"a": a, "b": b}}


def test_counts_of_a_test_are_added_and_its_mean_is_that_of_all_answers() -> None:
    """3 answers of 100 ms and one of 200 ms are 125 ms. Percentiles do not add up: the highest of a worker is shown."""
    counts = {"errors": 1, "fallbacks": 2, "usages": 3, "output_tokens": 40, "cost_micro_usd": 500}
    one = variant("a", 5, **counts, answers=3, latency_mean_ms=100.0, latency_p95_ms=150.0, ttft_p95_ms=90.0)
    two = variant("a", 1, **counts, answers=1, latency_mean_ms=200.0, latency_p95_ms=200.0, ttft_p95_ms=20.0)
    begun = "2026-01-01T00:00:09.000Z"
    (merged,) = merged_ab_tests(
        [[ab_test("t", one, variant("b", 0))], [ab_test("t", two, variant("b", 0), since=begun)]]
    )
    assert merged == ab_test(
        "t",
        variant(
            "a",
            6,
            errors=2,
            fallbacks=4,
            usages=6,
            output_tokens=80,
            cost_micro_usd=1000,
            answers=4,
            latency_mean_ms=125.0,
            latency_p95_ms=200.0,
            ttft_p95_ms=90.0,
        ),
        variant("b", 0),
    )


def test_a_worker_without_an_answer_does_not_change_the_times() -> None:
    """On either side."""
    some = variant("a", 1, answers=1, latency_mean_ms=0.5, latency_p95_ms=0.5, ttft_p95_ms=0.0)
    none, other = variant("a", 0), variant("b", 0)
    for pair in ((some, none), (none, some)):
        (merged,) = merged_ab_tests([ab_test("t", figures, other)] for figures in pair)
        assert merged["variants"]["a"] == some


def test_each_test_is_shown_once_and_in_order_also_where_a_worker_does_not_know_it_yet() -> None:
    """A test whose variants a reload changed is another one, whose figures are not added."""
    old, new = ab_test("t", variant("a", 1), variant("b", 1)), ab_test("t", variant("a", 1), variant("c", 1))
    first = ab_test("first", variant("a", 1), variant("b", 1))
    assert merged_ab_tests([[first, old], [first, new]])[1:] == [old, new]
    assert [test["name"] for test in merged_ab_tests([[first, old], [first, new]])] == ["first", "t", "t"]
    assert merged_ab_tests([[], [first]]) == [first]
    assert merged_ab_tests([]) == []


def test_a_shadow_test_is_shown_as_it_is_configured() -> None:
    """It has no statistics."""
    shadow = {"name": "s", "mode": "shadow", "variants": {"a": {"backend": "a"}, "b": {"backend": "b"}}}
    assert merged_ab_tests([[shadow], [shadow]]) == [shadow]


PAGE = """\
# HELP kronaxis_router_backend_active_requests Requests.
# TYPE kronaxis_router_backend_active_requests gauge
kronaxis_router_backend_active_requests{{backend="a"}} {active}
# HELP kronaxis_router_backend_healthy Well.
# TYPE kronaxis_router_backend_healthy gauge
kronaxis_router_backend_healthy{{backend="a"}} {well}
# HELP kronaxis_router_kv_pin_entries Prefixes.
# TYPE kronaxis_router_kv_pin_entries gauge
kronaxis_router_kv_pin_entries {pins}
"""


def test_requests_are_added_health_is_the_worst_and_all_else_the_highest() -> None:
    """Each worker counts its own open requests; pins are told to all, so that their sum would count one many times."""
    families = merged_gauges([PAGE.format(active=2, well=1, pins=7), PAGE.format(active=3, well=0, pins=9)])
    values = {sample.name: (sample.labels, sample.value) for family in families for sample in family.samples}
    assert values == {
        "kronaxis_router_backend_active_requests": ({"backend": "a"}, 5.0),
        "kronaxis_router_backend_healthy": ({"backend": "a"}, 0.0),
        "kronaxis_router_kv_pin_entries": ({}, 9.0),
    }


def test_a_series_of_one_worker_alone_stays_as_it_is() -> None:
    """A backend without samples of its own time to first token, say."""
    more = PAGE.format(active=1, well=1, pins=0).replace('backend="a"', 'backend="b"')
    families = merged_gauges([PAGE.format(active=2, well=1, pins=7), more])
    active = next(family for family in families if family.name == "kronaxis_router_backend_active_requests")
    assert [(sample.labels, sample.value) for sample in active.samples] == [
        ({"backend": "a"}, 2),
        ({"backend": "b"}, 1),
    ]


def test_no_page_gives_no_family() -> None:
    """While every worker is away."""
    assert merged_gauges([]) == []


def budget(service: str, spent: float, reserved: float) -> dict[str, Any]:
    """A service as a worker shows it."""
    return {"service": service, "limit_usd": 5.0, "spent_today_usd": spent, "reserved_usd": reserved}


def test_all_workers_know_what_was_spent_and_each_what_it_reserved() -> None:
    """So the one is the highest, and the other the sum."""
    merged = merged_budgets([[budget("shop", 1.0, 0.25), budget("lab", 0.5, 0.0)], [budget("shop", 1.5, 0.5)]])
    assert merged == [budget("lab", 0.5, 0.0), budget("shop", 1.5, 0.75)]


def shadow(samples: int, similarity: float | None, a_usd: float, per_day: float) -> dict[str, Any]:
    """What a worker tells of a shadow test."""
    return {
        "results": {"compared": samples, "failed": 1},
        "samples": samples,
        "similarity": {
            "mean": similarity,
            "p10": similarity,
            "p50": similarity,
            "threshold": 0.8,
            "share_alike": similarity,
        },
        "length_ratio_mean": similarity,
        "latency": {"a_mean_ms": 10.0, "b_mean_ms": 20.0, "delta_mean_ms": 10.0},
        "schema": {"samples": 1, "a_valid": 1, "b_valid": 0},
        "cost": {
            "samples": samples,
            "a_per_1000_usd": a_usd,
            "b_per_1000_usd": 1.0,
            "requests_per_day": per_day,
            "saving_per_day_usd": 0.0,
        },
    }


def test_shadows_of_workers_are_weighted_by_samples_and_the_saving_is_made_anew() -> None:
    """Percentiles show the worst worker."""
    merged = merged_shadow(shadow(3, 1.0, 4.0, 100.0), shadow(1, 0.6, 8.0, 300.0))
    assert (merged["samples"], merged["results"]) == (4, {"compared": 4, "failed": 2})
    assert merged["similarity"] == {"mean": 0.9, "p10": 0.6, "p50": 0.6, "threshold": 0.8, "share_alike": 0.9}
    assert merged["schema"] == {"samples": 2, "a_valid": 2, "b_valid": 0}
    assert merged["cost"]["a_per_1000_usd"] == 5.0
    assert merged["cost"]["saving_per_day_usd"] == (5.0 - 1.0) / 1000 * 400


def test_a_worker_without_samples_changes_no_mean() -> None:
    """It has none."""
    none = shadow(0, None, 0.0, 0.0)
    none["cost"] |= {"a_per_1000_usd": None, "b_per_1000_usd": None, "samples": 0}
    assert merged_shadow(shadow(2, 0.5, 4.0, 100.0), none)["similarity"]["mean"] == 0.5
    assert merged_shadow(none, none)["similarity"]["p50"] is None
