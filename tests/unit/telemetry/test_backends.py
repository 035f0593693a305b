"""Gauges of the backends."""

import pytest
from prometheus_client import CollectorRegistry

from router_ext.model.snapshot import BackendState, Health
from router_ext.telemetry.metrics import BackendCollector
from tests.fakes.domain import backend, snapshot


@pytest.mark.parametrize(("health", "value"), [(Health.HEALTHY, 1.0), (Health.DEGRADED, 1.0), (Health.DOWN, 0.0)])
def test_a_backend_counts_as_healthy_while_it_takes_requests(health: Health, value: float) -> None:
    """A degraded one still does. The requests in flight are those of the moment of the scrape."""
    states = snapshot(BackendState(backend(), health, 3))
    registry = CollectorRegistry()
    registry.register(BackendCollector(lambda: states))
    labels = {"backend": "a"}
    assert registry.get_sample_value("kronaxis_router_backend_healthy", labels) == value
    assert registry.get_sample_value("kronaxis_router_backend_active_requests", labels) == 3.0
