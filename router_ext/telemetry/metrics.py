"""Prometheus metrics of the router. Every name and label is defined here."""

from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from router_ext.model.snapshot import Health, Snapshot

PREFIX: Final = "kronaxis_router"

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_PROCESSING: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


class Metrics:
    """The router's metrics in one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"{PREFIX}_{name}", text, labels, registry=registry)

        def histogram(name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
            return Histogram(f"{PREFIX}_{name}", text, labels, buckets=buckets, registry=registry)

        self.registry: Final = registry
        self.requests: Final = counter("requests", "Requests given to a backend.", "service", "backend", "rule")
        self.errors: Final = counter(
            "errors", "Requests that failed or were refused, by reason.", "service", "backend", "reason"
        )
        self.duration: Final = histogram(
            "request_duration_seconds", "First byte received to last byte sent.", _SECONDS, "service", "backend"
        )
        self.ttft: Final = histogram(
            "ttft_seconds",
            "Request to first generated token; to the full answer when not streamed.",
            _SECONDS,
            "backend",
        )
        self.tokens: Final = counter("tokens", "Tokens that engines reported.", "backend", "direction")
        self.processing: Final = histogram(
            "processing_seconds", "How long Envoy waited for router_ext in one exchange.", _PROCESSING
        )
        self.bypassed: Final = counter("bypassed", "Requests that Envoy handled without the router, by route.", "route")
        self.lost: Final = counter("access_log_lost", "Exchanges whose access log entry never came.", "backend")
        self.faults: Final = counter("faults", "Bugs of router_ext that Envoy was steered around, by place.", "place")
        self.headers_only: Final = counter(
            "headers_only", "Decisions without the body: Envoy's request body mode does not show it."
        )
        self.reload_success: Final = Gauge(
            f"{PREFIX}_config_last_reload_success",
            "1 when the last change of the file was taken over, else 0.",
            registry=registry,
        )
        self.reload_time: Final = Gauge(
            f"{PREFIX}_config_last_reload_success_timestamp_seconds",
            "When a configuration was last taken over.",
            registry=registry,
        )


class BackendCollector(Collector):
    """Gauges of the backends, read when they are scraped."""

    def __init__(self, snapshot: Callable[[], Snapshot]) -> None:
        self._snapshot = snapshot

    def collect(self) -> Iterable[Metric]:
        """One sample a backend and gauge."""
        healthy = GaugeMetricFamily(
            f"{PREFIX}_backend_healthy", "1 while the backend takes requests.", labels=["backend"]
        )
        active = GaugeMetricFamily(
            f"{PREFIX}_backend_active_requests", "Requests of this router in flight.", labels=["backend"]
        )
        for name, state in self._snapshot().items():
            healthy.add_metric([name], float(state.health is not Health.DOWN))
            active.add_metric([name], state.in_flight)
        return healthy, active
