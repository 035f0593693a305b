"""What the table says, as values: of one reading, and of how it differs from the one before."""

from collections.abc import Callable
from dataclasses import dataclass

from router_ext.admin.shapes.backends import BackendShown
from router_ext.admin.shapes.figures import BackendFigures, Stats
from router_ext.cli.top.reading import Reading


@dataclass(frozen=True, slots=True)
class Line:
    """A backend. Times are milliseconds, rates are a second, money is US dollars of today; None is what is not known.

    ``queue`` counts the requests that wait in the engine, ``pin_hit_ratio`` is from 0 to 1.
    """

    backend: str
    health: str
    circuit_open: bool
    drained: bool
    paused_s: float
    queue: float | None
    in_flight: int
    max_concurrent: int
    ttft_p50_ms: float | None
    ttft_p95_ms: float | None
    pin_hit_ratio: float | None
    requests_s: float | None
    errors_s: float | None
    spend_usd: float | None


@dataclass(frozen=True, slots=True)
class BudgetNear:
    """The budget that is nearest its end. ``used`` is the share that is spent or reserved: over 1 when it is spent."""

    service: str
    used: float
    limit_usd: float


@dataclass(frozen=True, slots=True)
class Table:
    """The router and its backends, in the configuration's order."""

    uptime_s: float
    requests_s: float | None
    errors_s: float | None
    refusals_s: float | None
    in_flight: int
    sessions: int
    pin_hit_ratio: float | None
    spend_usd: float
    budget: BudgetNear | None
    backends: tuple[Line, ...]


def table(now: Reading, before: Reading | None) -> Table:
    """``before`` is an earlier reading, None for none: then there are no rates."""
    rates = _Rates(now, before)
    return Table(
        uptime_s=now.stats.uptime_seconds,
        requests_s=rates.of(lambda stats: stats.requests),
        errors_s=rates.of(lambda stats: stats.errors),
        refusals_s=rates.of(lambda stats: stats.refusals),
        in_flight=now.stats.in_flight,
        sessions=now.stats.sessions.active,
        pin_hit_ratio=now.stats.pins.hit_ratio,
        spend_usd=sum(now.stats.cost_today_usd.values()),
        budget=_nearest(now),
        backends=tuple(_line(backend, now, rates) for backend in now.backends),
    )


class _Rates:
    """A router that was started anew counts from 0: the reading before is of another one."""

    def __init__(self, now: Reading, before: Reading | None) -> None:
        self._now = now
        restarted = before is not None and now.stats.uptime_seconds < before.stats.uptime_seconds
        self._before = None if restarted else before

    def of(self, count: Callable[[Stats], int | None]) -> float | None:
        """Of a ``count`` that grows, a second; None where it is not known of both times."""
        if self._before is None or self._now.at_s <= self._before.at_s:
            return None
        then, now = count(self._before.stats), count(self._now.stats)
        if then is None or now is None or now < then:
            return None
        return (now - then) / (self._now.at_s - self._before.at_s)


def _line(backend: BackendShown, now: Reading, rates: _Rates) -> Line:
    def figure(count: Callable[[BackendFigures], int]) -> Callable[[Stats], int | None]:
        return lambda stats: count(stats.backends[backend.name]) if backend.name in stats.backends else None

    queue = now.queues.get(backend.name)
    return Line(
        backend=backend.name,
        health=backend.health,
        circuit_open=backend.circuit_open,
        drained=backend.drained,
        paused_s=backend.paused_seconds,
        queue=queue.engine.waiting if queue is not None and queue.engine is not None else None,
        in_flight=backend.active_requests,
        max_concurrent=backend.max_concurrent,
        ttft_p50_ms=backend.ttft_p50_ms,
        ttft_p95_ms=backend.ttft_p95_ms,
        pin_hit_ratio=_hit_ratio(now.stats.backends.get(backend.name)),
        requests_s=rates.of(figure(lambda figures: figures.requests)),
        errors_s=rates.of(figure(lambda figures: figures.errors)),
        spend_usd=None if now.spend_usd is None else now.spend_usd.get(backend.name, 0.0),
    )


def _hit_ratio(figures: BackendFigures | None) -> float | None:
    asked = figures.pin_hits + figures.pin_misses if figures is not None else 0
    return figures.pin_hits / asked if figures is not None and asked else None


def _nearest(now: Reading) -> BudgetNear | None:
    budgets = [
        BudgetNear(budget.service, (budget.spent_today_usd + budget.reserved_usd) / budget.limit_usd, budget.limit_usd)
        for budget in now.budgets
        if budget.limit_usd > 0
    ]
    return max(budgets, key=lambda budget: budget.used, default=None)
