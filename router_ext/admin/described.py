"""The application of the API without anything behind it, for its document."""

from typing import Any

from fastapi import APIRouter, FastAPI

from router_ext.admin.ab_tests import ab_test_routes
from router_ext.admin.access import Access
from router_ext.admin.api import admin_app
from router_ext.admin.budgets import budget_routes
from router_ext.admin.costs import cost_routes
from router_ext.admin.operations import elsewhere
from router_ext.admin.routes import changing_routes


class _Nothing:
    """Stands where sources are; none is asked."""

    def __getattr__(self, name: str) -> Any:
        return elsewhere


def described_app(*more: APIRouter) -> FastAPI:
    """Every route that a router has; answers none of them."""
    nothing: Any = _Nothing()
    shown = cost_routes(nothing), budget_routes(elsewhere), ab_test_routes(elsewhere)
    return admin_app(nothing, Access(None, exposed=False), *changing_routes(elsewhere, elsewhere), *shown, *more)


def document() -> dict[str, Any]:
    """The OpenAPI document of the admin API."""
    return described_app().openapi()
