"""Prometheus metrics of the router. Every name and label is defined here, or in a group that is part of them."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from router_ext.engine.pool import Slot
from router_ext.engine.spend import OTHER
from router_ext.health.load import QueueReading
from router_ext.model.snapshot import Health
from router_ext.telemetry.metric_groups import PREFIX, ConfigMetrics, MoneyMetrics, ShadowMetrics, WatchMetrics

SPENT_TODAY: Final = f"{PREFIX}_spent_today_usd"
BUDGET_SPENT: Final = f"{PREFIX}_budget_spent_ratio"
"""Families that are read when they are scraped, beside those of the backends."""

MICRO: Final = 1_000_000
"""Micro-dollars of a US dollar."""

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
_PROCESSING: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


class Metrics(MoneyMetrics, ShadowMetrics, ConfigMetrics, WatchMetrics):
    """The router's metrics in one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        for part in (MoneyMetrics, ShadowMetrics, ConfigMetrics, WatchMetrics):
            part.__init__(self, registry)

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
        self.tokens: Final = counter(
            "tokens", "Tokens that engines reported, or that were estimated.", "backend", "direction"
        )
        self.processing: Final = histogram(
            "processing_seconds", "How long Envoy waited for router_ext in one exchange.", _PROCESSING
        )
        self.pin_hits: Final = counter(
            "kv_pin_hits", "Requests sent where a prefix is expected to be cached.", "backend"
        )
        self.pin_misses: Final = counter("kv_pin_misses", "Requests sent where nothing is expected.", "backend")
        self.predicted_tokens: Final = counter(
            "kv_predicted_tokens", "Prompt tokens expected in the cache, where the engine reports.", "backend"
        )
        self.cached_tokens: Final = counter(
            "kv_cached_tokens", "Prompt tokens that engines found in their cache.", "backend"
        )
        self.scrape_errors: Final = counter("scrape_errors", "Unusable values on metrics pages.", "backend")
        self.failovers: Final = Counter(
            f"{PREFIX}_failovers",
            "Requests that went on to another backend before their answer began.",
            ("from", "to", "reason"),
            registry=registry,
        )
        self.retry_budget_exhausted: Final = counter(
            "retry_budget_exhausted", "Failed attempts that were not retried, since too many requests were."
        )
        self.circuit_trips: Final = counter("circuit_trips", "Times that a circuit breaker opened.", "backend")
        self.pauses: Final = counter("backend_pauses", "Times that a backend asked to be left alone.", "backend")
        self.sla_filtered: Final = counter(
            "sla_filtered", "Decisions that left a backend out as slower than max_ttft_ms.", "rule", "backend"
        )
        self.sla_missed: Final = counter(
            "sla_missed", "Decisions that gave max_ttft_ms up, since nobody met it.", "rule"
        )
        self.schema_validations: Final = counter(
            "schema_validations", "Texts of answers that were judged by the schema of their request."
        )
        self.schema_failures: Final = counter(
            "schema_failures", "Those of them that are no JSON, do not fit, or were not judged in time."
        )
        self.quality_gate: Final = counter(
            "quality_gate",
            "Requests that the quality gate looked at, by what became of them (`x-kronaxis-quality`) and what was "
            "wrong with an answer.",
            "result",
            "reason",
        )
        self.quality_gate_time: Final = histogram(
            "quality_gate_seconds", "Time in which the quality gate judged an answer.", _PROCESSING
        )
        self.judges_lost: Final = counter(
            "schema_judges_lost",
            "Processes that judge schemas and were replaced: over their `deadline`, `died`, `worn`, `abandoned` by a "
            "client that left; or `not_started`.",
            "reason",
        )
        self.dpo_pairs: Final = counter("dpo_pairs", "Preference pairs written.")
        self.dpo_dropped: Final = counter(
            "dpo_dropped",
            "Rescues that gave no pair: the prompt has `media`, ends in an answer (`last_role`) or is `malformed`; an "
            "answer has `no_text` or `several_choices`; or the line was not written: `queue_full`, `disk`, `too_long` "
            "for a file, `closed`.",
            "reason",
        )
        self.ab_requests: Final = counter(
            "ab_requests", "Requests of an A/B test that its variants were given, once they ended.", "test", "variant"
        )
        self.ab_fallbacks: Final = counter(
            "ab_fallbacks", "Requests of callers of a variant that could not take them.", "test", "variant"
        )
        self.bypassed: Final = counter("bypassed", "Requests that Envoy handled without the router, by route.", "route")
        self.lost: Final = counter("access_log_lost", "Exchanges whose access log entry never came.", "backend")
        self.faults: Final = counter("faults", "Bugs of router_ext that Envoy was steered around, by place.", "place")
        self.headers_only: Final = counter(
            "headers_only", "Decisions without the body: Envoy's request body mode does not show it."
        )
        self.sessions_active: Final = Gauge(
            f"{PREFIX}_sessions_active", "Sessions in the store.", registry=registry, multiprocess_mode="livemax"
        )
        self.session_creations: Final = counter("session_creations", "Sessions begun.")
        self.session_hydrations: Final = counter("session_hydrations", "Requests continued from a session.")
        self.session_tokens_saved: Final = counter(
            "session_tokens_saved", "Tokens of sessions that clients did not send again."
        )
        self.session_evictions: Final = counter(
            "session_evictions",
            "Sessions gone: `ttl`, `max_sessions`, `max_bytes`, `lost` by the store, `ended` by the client, or "
            "`deleted` by an operator.",
            "reason",
        )
        self.session_turns_not_saved: Final = counter(
            "session_turns_not_saved",
            "Requests of sessions that were not kept: the answer `failed`, `client_left`, the `store` was away, or the "
            "session was `gone`.",
            "reason",
        )
        self.session_store: Final = histogram(
            "session_store_seconds", "Time of a call of the session store.", _PROCESSING, "operation"
        )
        self.session_store_errors: Final = counter(
            "session_store_errors", "Calls of the session store without an answer.", "operation"
        )
        self.shared_published: Final = counter("shared_state_published", "Events sent to other routers.", "event")
        self.shared_received: Final = counter(
            "shared_state_received", "Events that came from other routers, and what could not be read.", "event"
        )
        self.shared_dropped: Final = counter(
            "shared_state_dropped", "Events given up before they were sent: the Redis was away or slow."
        )
        self.shared_connected: Final = Gauge(
            f"{PREFIX}_shared_state_connected",
            "1 while other routers can be reached; 0 also where `shared_state` is none.",
            registry=registry,
            multiprocess_mode="livemin",
        )
        self.ledger_unpushed: Final = Gauge(
            f"{PREFIX}_ledger_unpushed_rows",
            "Rows of the ledger that the shared Redis has not confirmed; 0 also where `shared_state` is none.",
            registry=registry,
            multiprocess_mode="livemax",
        )
        self.admin_changes: Final = counter(
            "admin_changes", "Changes that were asked for through the admin API.", "action", "result"
        )


_PIN_ENTRIES: Final = "kv_pin_entries"


class BackendCollector(Collector):
    """Gauges of the backends, read when they are scraped. ``now`` gives monotonic seconds."""

    def __init__(
        self, slots: Callable[[], Mapping[str, Slot]], pin_entries: Callable[[], int], now: Callable[[], float]
    ) -> None:
        self._slots = slots
        self._pin_entries = pin_entries
        self._now = now

    @staticmethod
    def names() -> tuple[str, ...]:
        """The names of all families."""
        return tuple(f"{PREFIX}_{name}" for name in (*(gauge[0] for gauge in _BACKEND_GAUGES), _PIN_ENTRIES))

    def describe(self) -> Iterable[Metric]:
        """The families without samples, by which a registry finds this collector for a name."""
        return [GaugeMetricFamily(name, "") for name in self.names()]

    def collect(self) -> Iterable[Metric]:
        """One sample a backend and gauge; a figure that is not known has no sample."""
        now, slots = self._now(), self._slots()
        for name, text, value in _BACKEND_GAUGES:
            family = GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=["backend"])
            for backend, slot in slots.items():
                figure = value(slot, now)
                if figure is not None:
                    family.add_metric([backend], figure)
            yield family
        yield GaugeMetricFamily(f"{PREFIX}_{_PIN_ENTRIES}", "Prefixes remembered.", value=self._pin_entries())


class SpendCollector(Collector):
    """What was spent today, read when it is scraped. ``totals`` gives micro-dollars by service, ``named_services``
    those that get a label value of their own: other routers may name others.
    """

    def __init__(self, totals: Callable[[], Mapping[str, int]], named_services: Callable[[], frozenset[str]]) -> None:
        self._totals = totals
        self._named_services = named_services

    def describe(self) -> Iterable[Metric]:
        """The family without samples, by which a registry finds this collector for a name."""
        return [GaugeMetricFamily(SPENT_TODAY, "")]

    def collect(self) -> Iterable[Metric]:
        """One sample for each label value that something was spent for."""
        named, sums = self._named_services(), dict[str, int]()
        for service, micro_usd in self._totals().items():
            label = service if service in named else OTHER
            sums[label] = sums.get(label, 0) + micro_usd
        text = "US dollars that all routers together spent since midnight, by `server.timezone`."
        family = GaugeMetricFamily(SPENT_TODAY, text, labels=["service"])
        for label, micro_usd in sums.items():
            family.add_metric([label], micro_usd / MICRO)
        yield family


class BudgetCollector(Collector):
    """How far the budgets are spent, read when it is scraped. ``ratios`` gives them by service."""

    def __init__(self, ratios: Callable[[], Mapping[str, float]]) -> None:
        self._ratios = ratios

    def describe(self) -> Iterable[Metric]:
        """The family without samples, by which a registry finds this collector for a name."""
        return [GaugeMetricFamily(BUDGET_SPENT, "")]

    def collect(self) -> Iterable[Metric]:
        """One sample for each service that has a budget."""
        text = "Part of the day's budget that all routers together spent; 1 is all of it."
        family = GaugeMetricFamily(BUDGET_SPENT, text, labels=["service"])
        for service, ratio in self._ratios().items():
            family.add_metric([service], ratio)
        yield family


def _queue(slot: Slot, now: float) -> QueueReading | None:
    load = slot.queue.state(now, math.inf)
    return load.reading if load is not None else None


def _queue_depth(slot: Slot, now: float) -> float | None:
    reading = _queue(slot, now)
    return None if reading is None else reading.waiting


def _active_inference(slot: Slot, now: float) -> float | None:
    reading = _queue(slot, now)
    return None if reading is None else reading.running


_BackendGauge = tuple[str, str, Callable[[Slot, float], float | None]]

_BACKEND_GAUGES: Final[tuple[_BackendGauge, ...]] = (
    (
        "backend_healthy",
        "1 while the backend can take requests: it is not down, and has not asked for a pause.",
        lambda slot, now: float(slot.state.health is not Health.DOWN and now >= slot.state.paused_until),
    ),
    (
        "backend_drained",
        "1 while the backend gets no new requests because it is drained.",
        lambda slot, _: float(slot.state.drained),
    ),
    (
        "circuit_open",
        "1 while the backend's circuit breaker is open.",
        lambda slot, _: float(slot.state.tripped),
    ),
    (
        "backend_ttft_p50_ms",
        "Median time to first token of the last 100 requests.",
        lambda slot, _: slot.state.ttft.p50_ms if slot.state.ttft.samples else None,
    ),
    (
        "backend_ttft_p95_ms",
        "95th percentile of the time to first token of the last 100 requests.",
        lambda slot, _: slot.state.ttft.p95_ms if slot.state.ttft.samples else None,
    ),
    ("backend_active_requests", "Requests of this router in flight.", lambda slot, _: slot.own_in_flight),
    ("backend_queue_depth", "Requests that wait in the engine.", _queue_depth),
    ("backend_active_inference", "Requests that the engine works on.", _active_inference),
    ("backend_scrape_age_seconds", "Age of the last good metrics page.", lambda slot, now: slot.queue.age_s(now)),
    (
        "backend_predicted_ttft_seconds",
        "Time to first token expected for the last request sent there.",
        lambda slot, _: slot.predicted_ttft_s,
    ),
)
