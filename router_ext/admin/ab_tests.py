"""A/B tests in the admin API."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse


def ab_test_routes(report: Callable[[], list[dict[str, Any]]]) -> APIRouter:
    """The route. ``report`` gives the tests as they are shown, in the file's order."""
    router = APIRouter(prefix="/api")

    @router.get("/ab-tests")
    async def ab_tests() -> JSONResponse:
        """Every A/B test with both variants' statistics."""
        return JSONResponse({"ab_tests": report()})

    return router
