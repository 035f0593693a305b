"""Budgets."""

from typing import Literal

from pydantic import Field

from router_ext.admin.shapes.backends import Origin
from router_ext.admin.shapes.base import Given, Shown


class BudgetState(Shown):
    """A service that has a limit, and how far it is spent."""

    service: str = Field(description="Its name; other for all that the configuration does not name.")
    limit_usd: float = Field(description="US dollars a day.")
    action: str = Field(description="reject or downgrade.")
    downgrade_target: str | None
    spent_today_usd: float = Field(description="Of all routers together.")
    reserved_usd: float = Field(description="What open calls may cost at most.")
    resets_in_s: int = Field(description="Seconds until the day ends.")


class BudgetList(Shown):
    """Every service that has a limit, by name."""

    budgets: list[BudgetState]


class BudgetSpec(Given):
    """A budget with the keys of router.yaml."""

    daily_limit_usd: float = Field(gt=0, le=1e9, description="US dollars a day.")
    action: Literal["reject", "downgrade"] | None = None
    downgrade_target: str | None = Field(default=None, max_length=256, description="Needs action: downgrade.")
    usage: Literal["exact", "estimate"] | None = Field(
        default=None, description="Where token counts of streams come from that do not ask for them."
    )


class BudgetConfig(Shown):
    """A budget as it is configured."""

    service: str
    daily_limit_usd: float
    action: str
    downgrade_target: str | None
    usage: str | None
    origin: Origin = Field(description="Whether router.yaml or the API says it.")
