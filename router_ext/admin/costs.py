"""Costs in the admin API: what was spent in a period, and where today is going."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from zoneinfo import ZoneInfo

from fastapi import APIRouter

from router_ext.admin.operations import errors
from router_ext.admin.refusal import RefusedError
from router_ext.admin.shapes import costs as shapes
from router_ext.admin.status import Json
from router_ext.config.sections import DEFAULT_SERVICE, Budget
from router_ext.costs.breakdown import breakdown
from router_ext.costs.days import Dates, Period, day_at
from router_ext.costs.forecast import as_json, forecast
from router_ext.model.ledger import Row
from router_ext.ports import Clock, Ledger, LedgerError


class CostSource(Protocol):
    """Where the answers come from: this process, or the workers that it watches."""

    async def costs(self, period: Period) -> Json:
        """The body of ``GET /api/costs``: see ``costs.breakdown``. Raises LedgerError."""
        ...

    async def forecasts(self) -> Json:
        """The body of ``GET /api/costs/forecast``: ``forecasts``, each as ``costs.forecast.as_json`` has it, by the
        names of the services.
        """
        ...


class SharedLedger(Protocol):
    """The ledgers of all routers."""

    async def rows(self, dates: Dates) -> list[Row] | None:
        """As ``ports.Ledger.rows``, of all routers; None when they cannot be reached. Raises LedgerError."""
        ...


@dataclass(frozen=True, slots=True)
class Costs:
    """This process. Each source is read when it is asked for.

    ``spent_today`` and ``last_hour`` are micro-dollars by service, of all routers and of the last 3,600 s; ``zone`` is
    where the day begins; ``shared`` is None where no other router shares the ledger.
    """

    ledger: Ledger
    spent_today: Callable[[], Mapping[str, int]]
    budgets: Callable[[], Sequence[Budget]]
    last_hour: Callable[[], Mapping[str, int]]
    clock: Clock
    zone: Callable[[], ZoneInfo]
    shared: SharedLedger | None = None

    async def costs(self, period: Period) -> Json:
        """See ``CostSource``. Of all routers; while they are out of reach, of this process and of those before it in
        the same file.
        """
        dates = period.dates(day_at(self.clock.wall(), self.zone()).date)
        if self.shared is None:
            return breakdown(period, dates, self.ledger.rows(dates))
        rows = await self.shared.rows(dates)
        if rows is None:
            return breakdown(period, dates, self.ledger.rows(dates), complete=False)
        return breakdown(period, dates, rows)

    async def forecasts(self) -> Json:
        """See ``CostSource``. Of each service that has a budget of its own or spent something today."""
        spent, last_hour, limits = (
            self.spent_today(),
            self.last_hour(),
            {budget.service: budget.limit_micro_usd for budget in self.budgets()},
        )
        named = limits.keys() - {DEFAULT_SERVICE} | {service for service, micro_usd in spent.items() if micro_usd}
        now, zone = self.clock.wall(), self.zone()
        forecasts = []
        for service in sorted(named):
            limit = limits.get(service, limits.get(DEFAULT_SERVICE))
            told = forecast(spent.get(service, 0), limit, last_hour.get(service, 0), now, zone)
            forecasts.append(as_json(service, limit, told))
        return {"forecasts": forecasts}


def cost_routes(source: CostSource) -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/api/costs", tags=["costs"])

    @router.get("", response_model=shapes.Costs, responses=errors(503))
    async def show_costs(period: Period = Period.TODAY) -> Json:
        """What calls cost, by day, service, backend, model and kind of call, with sums."""
        try:
            return await source.costs(period)
        except LedgerError:
            raise RefusedError(503, "ledger_unavailable", "The ledger cannot be read.") from None

    @router.get("/forecast", response_model=shapes.Forecasts)
    async def forecast_costs() -> Json:
        """What each service will have spent at the end of today, and when its budget runs out."""
        return await source.forecasts()

    return router
