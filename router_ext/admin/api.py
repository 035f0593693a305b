"""The admin application: health, readiness, metrics, decisions, and the routes that are given to it."""

from typing import Annotated

from fastapi import APIRouter, FastAPI, Query, Response
from fastapi.responses import JSONResponse
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.middleware.trustedhost import TrustedHostMiddleware

from router_ext.admin.access import Access, ApiGate
from router_ext.admin.explain import decision_routes
from router_ext.admin.sessions import store_away
from router_ext.admin.status import StatusSource
from router_ext.ports import SessionStoreError
from router_ext.version import __version__


def admin_app(status: StatusSource, access: Access, *routes: APIRouter) -> FastAPI:
    """The application.

    On an address of this machine only, requests for other host names are refused, so that a web page cannot reach it by
    rebinding.
    """
    app = FastAPI(title="router_ext admin", version=__version__, docs_url=None, redoc_url=None)
    app.add_middleware(ApiGate, access=access)
    app.add_middleware(
        TrustedHostMiddleware, allowed_hosts=["*"] if access.exposed else ["127.0.0.1", "localhost", "[::1]"]
    )
    for router in (_status_routes(status), decision_routes(status), *routes):
        app.include_router(router)
    app.add_exception_handler(SessionStoreError, store_away)
    return app


def _status_routes(status: StatusSource) -> APIRouter:
    router = APIRouter()

    @router.get("/health")
    async def health() -> JSONResponse:
        """State of the router and of its backends."""
        return JSONResponse(await status.health())

    @router.get("/ready")
    async def ready() -> JSONResponse:
        """200 once requests can be routed, 503 before and while draining."""
        is_ready = await status.ready()
        return JSONResponse({"ready": is_ready}, status_code=200 if is_ready else 503)

    @router.get("/metrics")
    async def metrics(name: Annotated[list[str] | None, Query(alias="name[]")] = None) -> Response:
        """Prometheus text format; with ``name[]`` the families of these names only."""
        return Response(await status.metrics(name or ()), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return router
