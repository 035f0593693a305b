"""Budgets in the admin API."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse


def budget_routes(report: Callable[[], list[dict[str, Any]]]) -> APIRouter:
    """The route. ``report`` gives the budgets as they are shown."""
    router = APIRouter(prefix="/api")

    @router.get("/budgets")
    async def budgets() -> JSONResponse:
        """Every service that has a limit: what it has spent today, and what its open calls may cost."""
        return JSONResponse({"budgets": report()})

    return router
