"""Figures and queues on the admin port."""

import math

from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from router_ext.admin.operations import Live
from router_ext.admin.queue import queues_shown
from router_ext.admin.stats import SAMPLES, stats_of
from router_ext.engine.pool import Pool
from router_ext.health.load import QueueReading
from router_ext.model.snapshot import Health
from router_ext.telemetry.metrics import BackendCollector, Metrics, SpendCollector
from tests.fakes.clock import FakeClock
from tests.fakes.domain import backend

PAGE = """
kronaxis_router_requests_total{service="shop",backend="a",rule="first"} 7.0
kronaxis_router_requests_total{service="other",backend="a",rule="default"} 2.0
kronaxis_router_requests_total{service="other",backend="b",rule="default"} 1.0
kronaxis_router_errors_total{service="shop",backend="a",reason="timeout"} 1.0
kronaxis_router_errors_total{service="shop",backend="",reason="no_backend"} 3.0
kronaxis_router_errors_total{service="other",backend="",reason="rate_limited"} 4.0
kronaxis_router_tokens_total{backend="a",direction="prompt"} 100.0
kronaxis_router_tokens_total{backend="a",direction="completion"} 20.0
kronaxis_router_kv_pin_hits_total{backend="a"} 3.0
kronaxis_router_kv_pin_misses_total{backend="a"} 1.0
kronaxis_router_kv_pin_entries 9.0
kronaxis_router_backend_active_requests{backend="a"} 2.0
kronaxis_router_backend_ttft_p50_ms{backend="a"} 12.5
kronaxis_router_backend_ttft_p95_ms{backend="a"} 80.0
kronaxis_router_sessions_active 4.0
kronaxis_router_session_creations_total 5.0
kronaxis_router_session_hydrations_total 6.0
kronaxis_router_session_tokens_saved_total 700.0
kronaxis_router_spent_today_usd{service="shop"} 0.25
kronaxis_router_shadow_total{test="t",result="compared"} 2.0
kronaxis_router_shadow_total{test="t",result="failed"} 1.0
kronaxis_router_quality_gate_total{result="passed",reason=""} 5.0
kronaxis_router_quality_gate_total{result="failed",reason="empty"} 1.0
kronaxis_router_quality_gate_total{result="failed",reason="refusal"} 2.0
"""


def test_figures_are_those_of_the_metrics() -> None:
    """A failure without a backend is a refusal; a backend that went still has what it counted."""
    stats = stats_of(text_string_to_metric_families(PAGE), 61.23456)
    assert (stats.uptime_seconds, stats.requests, stats.errors, stats.refusals, stats.in_flight) == (
        61.235,
        10,
        1,
        7,
        2,
    )
    a, b = stats.backends["a"], stats.backends["b"]
    assert (a.requests, a.errors, a.prompt_tokens, a.completion_tokens, a.active_requests) == (9, 1, 100, 20, 2)
    assert (a.pin_hits, a.pin_misses, a.ttft_p50_ms, a.ttft_p95_ms) == (3, 1, 12.5, 80.0)
    assert (b.requests, b.active_requests, b.ttft_p50_ms) == (1, 0, None)
    assert stats.rules == {"default": 3, "first": 7}
    assert stats.refusals_by_reason == {"no_backend": 3, "rate_limited": 4}
    assert (stats.pins.entries, stats.pins.hits, stats.pins.misses, stats.pins.hit_ratio) == (9, 3, 1, 0.75)
    sessions = stats.sessions
    assert (sessions.active, sessions.created, sessions.continued, sessions.tokens_saved) == (4, 5, 6, 700)
    assert stats.cost_today_usd == {"shop": 0.25}
    assert stats.shadows == {"t": {"compared": 2, "failed": 1}}
    assert stats.quality_gate == {"failed": 3, "passed": 5}


def test_before_the_first_request_there_are_no_ratios() -> None:
    """And everything is counted from 0."""
    stats = stats_of([], 0.0)
    assert (stats.requests, stats.backends, stats.pins.hit_ratio) == (0, {}, None)


def test_every_figure_is_read_from_a_metric_that_there_is() -> None:
    """A metric that is renamed would leave a figure at 0 for ever."""
    registry = CollectorRegistry()
    Metrics(registry)
    registry.register(BackendCollector(dict, lambda: 0, lambda: 0.0))
    registry.register(SpendCollector(dict, frozenset))
    known = {f"{family.name}_total" if family.type == "counter" else family.name for family in registry.collect()}
    assert set(SAMPLES) <= known


def test_a_gauge_that_is_read_when_it_is_asked_for_is_found_by_its_name() -> None:
    """Only the metrics that figures need are collected for them."""
    registry = CollectorRegistry()
    registry.register(SpendCollector(lambda: {"shop": 250_000}, lambda: frozenset({"shop"})))
    assert stats_of(registry.restricted_registry(SAMPLES).collect(), 0.0).cost_today_usd == {"shop": 0.25}


def test_a_queue_is_what_the_engine_says_and_what_routing_reckons_with() -> None:
    """With the age of the reading; a backend that says nothing has none."""
    clock, pool = FakeClock(), Pool()
    pool.configure([backend("a", room=4), backend("b")])
    pool["a"].probed(Health.HEALTHY, clock.monotonic(), alive=True)
    pool["a"].scraped(QueueReading(waiting=2.0, running=3.0), clock.monotonic())
    pool["a"].acquire()
    clock.advance(1.5)
    pool["b"].pause(clock.monotonic() + 2.0)
    a, b = queues_shown(Live(pool.snapshot, pool.slots, clock), frozenset({"b"})).queues
    assert a.engine is not None
    assert (a.engine.running, a.engine.waiting, a.engine.age_seconds) == (3.0, 2.0, 1.5)
    assert (a.in_flight, a.max_concurrent, a.load, a.drained, a.paused_seconds) == (1, 4, 6.0, False, 0.0)
    assert (b.engine, b.load, b.drained, b.paused_seconds, b.expected_wait_seconds) == (None, 0.0, True, 2.0, None)


def test_the_wait_is_told_once_the_rate_of_prefill_is_learned() -> None:
    """Never less than none, and always a number that JSON knows."""
    clock, pool = FakeClock(), Pool()
    pool.configure([backend("a")])
    slot = pool["a"]
    for number in range(3):
        slot.begin_prefill(str(number), 2048, clock.monotonic(), shows_first_token=True)
        clock.advance(1.0)
        slot.first_token(str(number), clock.monotonic())
        slot.end_prefill(str(number), clock.monotonic())
    live = Live(pool.snapshot, pool.slots, clock)
    assert queues_shown(live, frozenset()).queues[0].expected_wait_seconds == 0.0
    slot.begin_prefill("more", 4096, clock.monotonic(), shows_first_token=True)
    (queue,) = queues_shown(live, frozenset()).queues
    assert queue.prefill_queued == 4096
    assert queue.expected_wait_seconds is not None
    assert math.isclose(queue.expected_wait_seconds, 2.0, rel_tol=0.01)
