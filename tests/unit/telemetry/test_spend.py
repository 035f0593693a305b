"""The gauge of the day's spending."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry

from router_ext.telemetry.metrics import BudgetCollector, SpendCollector


def samples(totals: Mapping[str, int], *named: str) -> dict[str, float]:
    """The gauge by service, where ``named`` are the services of the configuration."""
    registry = CollectorRegistry()
    registry.register(SpendCollector(lambda: totals, lambda: frozenset(named)))
    (family,) = registry.collect()
    assert family.name == "kronaxis_router_spent_today_usd"
    return {sample.labels["service"]: sample.value for sample in family.samples}


def test_the_day_s_spending_is_shown_in_dollars_by_service() -> None:
    """Where nothing was spent there is no sample."""
    assert samples({"shop": 1_250_000, "other": 1}, "shop", "cart") == {"shop": 1.25, "other": 0.000001}
    assert samples({}, "shop") == {}


def test_services_that_only_other_routers_name_are_other() -> None:
    """Together, and with what is other everywhere."""
    assert samples({"cart": 2_000_000, "shop": 1_000_000, "other": 3_000_000, "x": 1}, "shop") == {
        "shop": 1.0,
        "other": 5.000001,
    }


def test_a_scrape_reads_what_is_there_then() -> None:
    """The services that are named too."""
    totals, named, registry = {"shop": 1_000_000}, {"shop"}, CollectorRegistry()
    registry.register(SpendCollector(lambda: totals, lambda: frozenset(named)))
    totals["shop"] = 2_000_000
    assert registry.get_sample_value("kronaxis_router_spent_today_usd", {"service": "shop"}) == 2.0
    named.clear()
    assert registry.get_sample_value("kronaxis_router_spent_today_usd", {"service": "other"}) == 2.0


def test_the_gauges_of_spending_are_found_by_their_names() -> None:
    """A scrape with ``name[]`` gets them, and so does whoever reads single figures."""
    registry = CollectorRegistry()
    registry.register(SpendCollector(lambda: {"shop": 1_000_000}, lambda: frozenset({"shop"})))
    registry.register(BudgetCollector(lambda: {"shop": 0.5}))
    for name, value in (("kronaxis_router_spent_today_usd", 1.0), ("kronaxis_router_budget_spent_ratio", 0.5)):
        (family,) = registry.restricted_registry([name]).collect()
        assert [(sample.name, sample.value) for sample in family.samples] == [(name, value)]
