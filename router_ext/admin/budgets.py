"""Budgets in the admin API."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request

from router_ext.admin.audit import Action
from router_ext.admin.operations import DryRun, Source, errors, wish
from router_ext.admin.refusal import RefusedError
from router_ext.admin.shapes.base import PathName
from router_ext.admin.shapes.budgets import BudgetConfig, BudgetList, BudgetSpec
from router_ext.admin.shapes.changes import ChangeAnswer
from router_ext.admin.views import budget_config
from router_ext.config.changes import Changes

Answer = ChangeAnswer[BudgetConfig]


def budget_routes(report: Callable[[], Awaitable[list[dict[str, Any]]]]) -> APIRouter:
    """The route that shows them. ``report`` gives the budgets as they are shown."""
    router = APIRouter(prefix="/api/budgets", tags=["budgets"])

    @router.get("", response_model=BudgetList)
    async def list_budgets() -> dict[str, Any]:
        """Every service that has a limit: what it has spent today, and what its open calls may cost."""
        return {"budgets": await report()}

    return router


def budget_change_routes(source: Source) -> APIRouter:
    """The routes that change them. A service may hold slashes; ``default`` is for those that are not named."""
    router = APIRouter(prefix="/api/budgets", tags=["budgets"])

    @router.put("/{service:path}", response_model=Answer, responses=errors(404, 503))
    async def set_budget(request: Request, service: PathName, spec: BudgetSpec, dry_run: DryRun = False) -> Answer:
        """Gives a service a budget, in the place of the one it has. What was spent today stays spent."""
        written = spec.model_dump(mode="json", exclude_unset=True)
        asked = wish(request, Action.SET_BUDGET, service, dry_run=dry_run)
        return await source().desk.change(
            asked,
            lambda changes: changes.with_budget(service, written),
            lambda running: budget_config(running, service),
        )

    @router.delete("/{service:path}", response_model=Answer, responses=errors(404, 503))
    async def reset_budget(request: Request, service: str, dry_run: DryRun = False) -> Answer:
        """Gives a service the file's budget again, or none where the file has none. 404 where the API set none."""

        def edit(changes: Changes) -> Changes:
            if service not in changes.budgets:
                raise RefusedError(404, "budget_not_found", "The API has set no budget for this service.")
            return changes.without_budget(service)

        asked = wish(request, Action.RESET_BUDGET, service, dry_run=dry_run)
        return await source().desk.change(asked, edit, lambda running: budget_config(running, service))

    return router
