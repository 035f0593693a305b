"""Figures of the running router in the admin API, added up from its metrics."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from fastapi import APIRouter
from prometheus_client import Metric

from router_ext.admin.shapes.figures import BackendFigures, PinFigures, SessionFigures, Stats
from router_ext.admin.status import StatusSource

_PREFIX: Final = "kronaxis_router_"

_READ: Final = (
    "requests_total",
    "errors_total",
    "tokens_total",
    "kv_pin_hits_total",
    "kv_pin_misses_total",
    "kv_pin_entries",
    "backend_active_requests",
    "backend_ttft_p50_ms",
    "backend_ttft_p95_ms",
    "sessions_active",
    "session_creations_total",
    "session_hydrations_total",
    "session_tokens_saved_total",
    "spent_today_usd",
    "shadow_total",
    "quality_gate_total",
)

SAMPLES: Final = tuple(_PREFIX + name for name in _READ)
"""Names of the samples that are read."""

Labels = Mapping[str, str]


def stats_routes(status: StatusSource) -> APIRouter:
    """The route."""
    router = APIRouter(prefix="/api", tags=["figures"])

    @router.get("/stats", response_model=Stats)
    async def show_stats() -> Stats:
        """Requests, refusals, tokens, pins, sessions and spending, over all processes of the router."""
        return stats_of(await status.families(SAMPLES), status.uptime())

    return router


class _Samples:
    """Samples by name, without the prefix."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._found: dict[str, list[tuple[Labels, float]]] = {name: [] for name in _READ}
        for family in families:
            for sample in family.samples:
                found = self._found.get(sample.name.removeprefix(_PREFIX))
                if found is not None:
                    found.append((sample.labels, sample.value))

    def total(self, name: str, **labels: str) -> int:
        """The sum over all samples with these labels."""
        wanted = labels.items()
        return round(sum(value for found, value in self._found[name] if wanted <= found.items()))

    def value(self, name: str, **labels: str) -> float | None:
        """One sample; None when there is none."""
        wanted = labels.items()
        return next((value for found, value in self._found[name] if wanted <= found.items()), None)

    def by(self, name: str, label: str, where: Callable[[Labels], bool] = lambda _: True) -> dict[str, float]:
        """Sums by one label, in alphabetical order; those that are "" are left out."""
        sums: dict[str, float] = {}
        for labels, value in self._found[name]:
            if labels.get(label) and where(labels):
                sums[labels[label]] = sums.get(labels[label], 0.0) + value
        return dict(sorted(sums.items()))

    def counts(self, name: str, label: str, where: Callable[[Labels], bool] = lambda _: True) -> dict[str, int]:
        """As ``by``, in whole numbers."""
        return {key: round(value) for key, value in self.by(name, label, where).items()}


def stats_of(families: Iterable[Metric], uptime_s: float) -> Stats:
    """The figures in these families of metrics, which may be of several processes."""
    samples = _Samples(families)
    refusals = samples.counts("errors_total", "reason", lambda labels: not labels["backend"])
    errors = samples.counts("errors_total", "backend")
    return Stats(
        uptime_seconds=round(uptime_s, 3),
        requests=samples.total("requests_total"),
        errors=sum(errors.values()),
        refusals=sum(refusals.values()),
        in_flight=samples.total("backend_active_requests"),
        backends={name: _backend(samples, name, errors.get(name, 0)) for name in _backends(samples)},
        rules=samples.counts("requests_total", "rule"),
        refusals_by_reason=refusals,
        pins=_pins(samples),
        sessions=SessionFigures(
            active=samples.total("sessions_active"),
            created=samples.total("session_creations_total"),
            continued=samples.total("session_hydrations_total"),
            tokens_saved=samples.total("session_tokens_saved_total"),
        ),
        cost_today_usd={name: round(usd, 6) for name, usd in samples.by("spent_today_usd", "service").items()},
        shadows={test: _results(samples, test) for test in samples.by("shadow_total", "test")},
        quality_gate=samples.counts("quality_gate_total", "result"),
    )


def _backends(samples: _Samples) -> Iterator[str]:
    """Those that there are, and those that had requests before they went."""
    yield from {**samples.by("backend_active_requests", "backend"), **samples.by("requests_total", "backend")}


def _backend(samples: _Samples, name: str, errors: int) -> BackendFigures:
    return BackendFigures(
        requests=samples.total("requests_total", backend=name),
        errors=errors,
        prompt_tokens=samples.total("tokens_total", backend=name, direction="prompt"),
        completion_tokens=samples.total("tokens_total", backend=name, direction="completion"),
        pin_hits=samples.total("kv_pin_hits_total", backend=name),
        pin_misses=samples.total("kv_pin_misses_total", backend=name),
        active_requests=samples.total("backend_active_requests", backend=name),
        ttft_p50_ms=samples.value("backend_ttft_p50_ms", backend=name),
        ttft_p95_ms=samples.value("backend_ttft_p95_ms", backend=name),
    )


def _pins(samples: _Samples) -> PinFigures:
    hits, misses = samples.total("kv_pin_hits_total"), samples.total("kv_pin_misses_total")
    ratio = round(hits / (hits + misses), 4) if hits + misses else None
    return PinFigures(entries=samples.total("kv_pin_entries"), hits=hits, misses=misses, hit_ratio=ratio)


def _results(samples: _Samples, test: str) -> dict[str, int]:
    return samples.counts("shadow_total", "result", lambda labels: labels["test"] == test)
