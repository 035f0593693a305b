"""One answer out of the answers of all workers."""

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families

from router_ext.workers.merge_shadow import merged_shadow

Json = dict[str, Any]

HEALTH_ORDER: Final = ("healthy", "degraded", "down")
"""From best to worst."""


def merged_health(answers: Iterable[Json]) -> Json:
    """Every backend as the worker sees it that sees it worst. ``status`` is ``ok`` while a worker has a backend that
    takes requests, ``no_backend`` while none has, ``no_worker`` without an answer.
    """
    found = list(answers)
    backends: dict[str, Json] = {}
    for answer in found:
        for backend in answer["backends"]:
            name = backend["name"]
            backends[name] = _worse(backends[name], backend) if name in backends else backend
    status = "ok" if any(answer["status"] == "ok" for answer in found) else "no_backend"
    return {"status": status if found else "no_worker", "backends": list(backends.values())}


def _worse(one: Json, other: Json) -> Json:
    return {
        **one,
        "health": max(one["health"], other["health"], key=HEALTH_ORDER.index),
        "circuit_open": one["circuit_open"] or other["circuit_open"],
        "drained": one["drained"] or other["drained"],
        # Each worker counts the requests of all: they differ by what changed between two answers.
        "active_requests": max(one["active_requests"], other["active_requests"]),
    }


def merged_decisions(answers: Iterable[Sequence[Json]], limit: int) -> list[Json]:
    """The newest ``limit`` of all, newest first. Each answer is in that order already."""
    # A JSON timestamp has as many digits of a fraction as it needs: without the Z the order of texts is that of times.
    merged = heapq.merge(*answers, key=lambda decision: str(decision["time"]).rstrip("Z"), reverse=True)
    return [decision for decision, _ in zip(merged, range(limit), strict=False)]


_TEST_SUMS: Final = ("requests", "errors", "fallbacks", "answers", "usages", "output_tokens", "cost_micro_usd")
_TEST_PERCENTILES: Final = ("latency_p95_ms", "ttft_p95_ms")


def merged_ab_tests(answers: Iterable[Sequence[Json]]) -> list[Json]:
    """Every A/B test once, in the order in which the workers tell of them; counts are added, means weighted by answers.

    A percentile cannot be made out of those of the workers: the highest of them is shown, over which at most 5 % of the
    last answers of any worker lie. During a reload tests of one name with other variants stand beside each other.
    """
    merged: dict[tuple[str, ...], Json] = {}
    for test in chain.from_iterable(answers):
        identity = test["name"], test["mode"], *(test["variants"][name]["backend"] for name in ("a", "b"))
        merged[identity] = _one_test(merged[identity], test) if identity in merged else test
    return list(merged.values())


def _one_test(one: Json, other: Json) -> Json:
    if one.get("shadow") and other.get("shadow"):
        return {**one, "shadow": merged_shadow(one["shadow"], other["shadow"])}
    if "since" not in one:
        return one
    variants = {name: _one_variant(figures, other["variants"][name]) for name, figures in one["variants"].items()}
    return {**one, "since": min(one["since"], other["since"]), "variants": variants}


def _one_variant(one: Json, other: Json) -> Json:
    sums = {name: one[name] + other[name] for name in _TEST_SUMS}
    percentiles = {name: max(_known(one[name], other[name]), default=None) for name in _TEST_PERCENTILES}
    total_ms = sum((item["latency_mean_ms"] or 0.0) * item["answers"] for item in (one, other))
    mean_ms = round(total_ms / sums["answers"], 3) if sums["answers"] else None
    return {**one, **sums, **percentiles, "latency_mean_ms": mean_ms}


def _known(*values: float | None) -> list[float]:
    return [value for value in values if value is not None]


_Fold = Callable[[float, float], float]

_FOLDS: Final[Mapping[str, _Fold]] = {
    "kronaxis_router_backend_active_requests": lambda one, other: one + other,
    "kronaxis_router_backend_healthy": min,
}
"""How a gauge that each worker reads at scrape time becomes one; all others show the highest value of any worker."""


def merged_gauges(pages: Iterable[str]) -> list[Metric]:
    """The gauges of several pages in Prometheus text format, each series once."""
    families: dict[str, Metric] = {}
    values: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for page in pages:
        for family in text_string_to_metric_families(page):
            families.setdefault(family.name, family)
            series = values.setdefault(family.name, {})
            fold = _FOLDS.get(family.name, max)
            for sample in family.samples:
                labels = tuple(sample.labels.items())
                series[labels] = fold(series[labels], sample.value) if labels in series else sample.value
    return [_family(family, values[name]) for name, family in families.items()]


def _family(family: Metric, series: Mapping[tuple[tuple[str, str], ...], float]) -> Metric:
    names = [name for name, _ in next(iter(series), ())]
    merged = GaugeMetricFamily(family.name, family.documentation, labels=names)
    for labels, value in series.items():
        merged.add_metric([text for _, text in labels], value)
    return merged


def merged_budgets(answers: Iterable[Sequence[Json]]) -> list[Json]:
    """Every service by name. Each worker knows what all of them spent, up to a second ago, and what it reserved
    itself.
    """
    merged: dict[str, Json] = {}
    for shown in (item for answer in answers for item in answer):
        before = merged.get(shown["service"], shown | {"reserved_usd": 0.0})
        spent = max(before["spent_today_usd"], shown["spent_today_usd"])
        reserved = before["reserved_usd"] + shown["reserved_usd"]
        merged[shown["service"]] = shown | {"spent_today_usd": spent, "reserved_usd": reserved}
    return [merged[service] for service in sorted(merged)]
