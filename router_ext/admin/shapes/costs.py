"""Costs."""

from pydantic import Field

from router_ext.admin.shapes.base import Shown


class CostRow(Shown):
    """Calls of one day that have all names in common."""

    day: str
    service: str
    backend: str
    model: str
    kind: str = Field(description="What the calls were made for: proxied, fallback or shadow.")
    calls: int
    estimated_calls: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    cost_usd: float


class Costs(Shown):
    """What calls cost in a period, in US dollars."""

    period: str
    from_: str = Field(alias="from", description="First day.")
    to: str = Field(description="Last day.")
    complete: bool = Field(description="False while other routers cannot be asked: then theirs are missing.")
    total_usd: float
    rows: list[CostRow]
    by_service: dict[str, float]
    by_backend: dict[str, float]
    by_kind: dict[str, float]


class ForecastShown(Shown):
    """Where a service's day is going, in US dollars."""

    service: str
    spent_today: float
    projected_daily: float
    projected_daily_low: float
    projected_daily_high: float
    rate_last_hour: float
    budget: float | None
    exhaustion_time: str | None = Field(description="When the budget runs out; null when it does not today.")


class Forecasts(Shown):
    """One for each service with a budget of its own or with spending today."""

    forecasts: list[ForecastShown]
