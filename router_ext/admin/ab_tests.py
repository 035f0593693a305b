"""A/B tests in the admin API."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter

from router_ext.admin.shapes.ab_tests import AbTests


def ab_test_routes(report: Callable[[], Awaitable[list[dict[str, Any]]]]) -> APIRouter:
    """The route. ``report`` gives the tests as they are shown, in the file's order."""
    router = APIRouter(prefix="/api", tags=["experiments"])

    @router.get("/ab-tests", response_model=AbTests, response_model_exclude_unset=True)
    async def list_ab_tests() -> dict[str, Any]:
        """Every A/B test with both variants' statistics."""
        return {"ab_tests": await report()}

    return router
