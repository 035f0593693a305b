"""Metrics of budgets and rate limits."""

import structlog
from prometheus_client import CollectorRegistry

from router_ext.model.request import Caller
from router_ext.telemetry.metrics import BudgetCollector, Metrics
from router_ext.telemetry.recorder import Recorder


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    """One sample."""
    return registry.get_sample_value(f"kronaxis_router_{name}", labels)


def test_what_limits_do_is_counted_by_service() -> None:
    """One that the configuration does not name is ``other``."""
    registry = CollectorRegistry()
    recorder = Recorder(Metrics(registry), structlog.get_logger(), lambda: 0.0, frozenset({"shop"}))
    for service in ("shop", "made-up", "made-up-too"):
        recorder.budget_action(Caller(service), "reject")
        recorder.rate_limited(Caller(service))
    recorder.budget_action(Caller("shop"), "downgrade")
    recorder.unpriced_call("a")
    actions = [("shop", "reject", 1), ("other", "reject", 2), ("shop", "downgrade", 1)]
    for service, action, count in actions:
        assert value(registry, "budget_actions_total", service=service, action=action) == count
    assert value(registry, "rate_limited_total", service="shop") == 1
    assert value(registry, "rate_limited_total", service="other") == 2
    assert value(registry, "unpriced_calls_total", backend="a") == 1


def test_the_spent_part_of_a_budget_is_read_at_each_scrape() -> None:
    """Services without a budget have no sample."""
    ratios, registry = {"shop": 0.25}, CollectorRegistry()
    registry.register(BudgetCollector(lambda: ratios))
    assert value(registry, "budget_spent_ratio", service="shop") == 0.25
    ratios["shop"] = 1.5
    assert value(registry, "budget_spent_ratio", service="shop") == 1.5
    assert value(registry, "budget_spent_ratio", service="cart") is None
