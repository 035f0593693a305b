"""Metrics of single features, each a part of ``telemetry.metrics.Metrics``."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

PREFIX: Final = "kronaxis_router"

_SHARES: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)


class MoneyMetrics:
    """What calls cost, and whom a limit stopped."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"{PREFIX}_{name}", text, labels, registry=registry)

        self.cost_usd: Final = counter(
            "cost_usd", "US dollars that calls cost, by the backend's prices.", "service", "backend", "kind"
        )
        self.usage_estimated: Final = counter(
            "usage_estimated", "Calls whose tokens were estimated, since the backend reported none.", "backend"
        )
        self.budget_actions: Final = counter(
            "budget_actions", "Requests that came when the day's budget was spent, by what it did.", "service", "action"
        )
        self.unpriced_calls: Final = counter(
            "unpriced_calls", "Calls under a budget to a backend whose prices are not known.", "backend"
        )
        self.rate_limited: Final = counter("rate_limited", "Requests over the rate limit of their service.", "service")


class ShadowMetrics:
    """What becomes of the copies of requests that a backend under test answers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str, *labels: str) -> Counter:
            return Counter(f"{PREFIX}_{name}", text, labels, registry=registry)

        self.shadows: Final = counter(
            "shadow",
            "Requests drawn for a shadow: `compared`; `unreadable`, an answer is no completion; `failed`, variant B "
            "gave none; `skipped`, it takes none now; `no_primary`, variant A gave none; `dropped`, no place was left.",
            "test",
            "result",
        )
        self.shadow_similarity: Final = Histogram(
            f"{PREFIX}_shadow_similarity",
            "How alike the words of both answers are, from 0 to 1.",
            ("test",),
            buckets=_SHARES,
            registry=registry,
        )
        self.shadow_log_lines: Final = counter("shadow_log_lines", "Comparisons written to `shadow_log_path`.")
        self.shadow_log_dropped: Final = counter(
            "shadow_log_dropped",
            "Comparisons that were not written: `queue_full`, `disk`, `too_long` for a file, `closed`.",
            "reason",
        )


class ConfigMetrics:
    """Whether what is on disk is in force."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"{PREFIX}_config_{name}", text, registry=registry, multiprocess_mode="livemin")

        self.reload_success: Final = gauge(
            "last_reload_success", "1 when the last change of the file was taken over, else 0."
        )
        self.reload_time: Final = gauge(
            "last_reload_success_timestamp_seconds", "When a configuration was last taken over."
        )
        self.changes_in_force: Final = gauge(
            "changes_in_force", "1 when the changes of the admin API that are on disk are in force, else 0."
        )
        self.changes_in_force.set(1)


class WatchMetrics:
    """Who watches live requests."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.watchers: Final = Gauge(
            f"{PREFIX}_decision_watchers",
            "Who watches live requests now, as `router-ext tail` does.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.watch_dropped: Final = Counter(
            f"{PREFIX}_decision_events_dropped",
            "What watchers of live requests did not hear of: they were too slow.",
            registry=registry,
        )
