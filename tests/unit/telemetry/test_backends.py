"""Gauges of the backends."""

from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from router_ext.engine.pool import Pool, Slot
from router_ext.engine.tally import Tally
from router_ext.health.load import QueueReading
from router_ext.model.snapshot import Health
from router_ext.telemetry.metrics import BackendCollector
from tests.fakes.domain import backend

LABELS = {"backend": "a"}


def registry_of(slot: Slot, now: float = 100.0, pin_entries: int = 0) -> CollectorRegistry:
    """A registry with the gauges of one backend."""
    registry = CollectorRegistry()
    registry.register(BackendCollector(lambda: {"a": slot}, lambda: pin_entries, lambda: now))
    return registry


@pytest.mark.parametrize(("health", "value"), [(Health.HEALTHY, 1.0), (Health.DEGRADED, 1.0), (Health.DOWN, 0.0)])
def test_a_backend_counts_as_healthy_while_it_takes_requests(health: Health, value: float) -> None:
    """A degraded one still does. The requests in flight are those of the moment of the scrape."""
    slot = Slot(backend())
    slot.probed(health, 0.0, alive=health is not Health.DOWN)
    for _ in range(3):
        slot.acquire()
    registry = registry_of(slot)
    assert registry.get_sample_value("kronaxis_router_backend_healthy", LABELS) == value
    assert registry.get_sample_value("kronaxis_router_backend_active_requests", LABELS) == 3.0


def test_a_worker_shows_the_requests_that_it_has_in_flight_itself(tmp_path: Path) -> None:
    """They are added over all workers elsewhere: none counts twice."""
    Tally.create(tmp_path / "tally", 2)
    one, two = (Pool(Tally.open(tmp_path / "tally", worker)) for worker in range(2))
    for pool in (one, two):
        pool.configure([backend()])
        pool["a"].acquire()
    assert one.snapshot()["a"].in_flight == 2
    assert registry_of(one["a"]).get_sample_value("kronaxis_router_backend_active_requests", LABELS) == 1.0


def test_what_is_not_known_has_no_sample() -> None:
    """Before the first page there is no queue depth, not a depth of 0."""
    registry = registry_of(Slot(backend()))
    for name in ("queue_depth", "active_inference", "scrape_age_seconds", "predicted_ttft_seconds"):
        assert registry.get_sample_value(f"kronaxis_router_backend_{name}", LABELS) is None


def test_the_last_page_and_its_age_are_shown() -> None:
    """Waiting and running requests as scraped, and seconds since then."""
    slot = Slot(backend())
    slot.scraped(QueueReading(waiting=4, running=2), now=97.0)
    registry = registry_of(slot, now=100.0, pin_entries=7)
    assert registry.get_sample_value("kronaxis_router_backend_queue_depth", LABELS) == 4
    assert registry.get_sample_value("kronaxis_router_backend_active_inference", LABELS) == 2
    assert registry.get_sample_value("kronaxis_router_backend_scrape_age_seconds", LABELS) == 3
    assert registry.get_sample_value("kronaxis_router_kv_pin_entries") == 7
