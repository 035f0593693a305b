"""The admin application: health, readiness, metrics, decisions and sessions."""

from collections.abc import Callable
from typing import Annotated

from fastapi import FastAPI, Query, Response
from fastapi.responses import JSONResponse
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from starlette.middleware.trustedhost import TrustedHostMiddleware

from router_ext.admin.access import Access, ApiGate
from router_ext.admin.sessions import session_routes, store_away
from router_ext.admin.status import Status
from router_ext.model.secret import Secret
from router_ext.ports import SessionStore, SessionStoreError, Telemetry
from router_ext.version import __version__


def admin_app(
    status: Status,
    registry: CollectorRegistry,
    allowed_hosts: tuple[str, ...],
    *,
    sessions: Callable[[], SessionStore | None] = lambda: None,
    telemetry: Telemetry | None = None,
    token: Secret | None = None,
    exposed: bool = True,
) -> FastAPI:
    """The application. Requests for other host names are refused, so that a web page cannot reach it by rebinding.

    ``sessions`` gives None while they are not enabled; ``telemetry`` is told of those that are deleted here. ``token``
    and ``exposed`` are those of ``Access``.
    """
    app = FastAPI(title="router_ext admin", version=__version__, docs_url=None, redoc_url=None)
    app.add_middleware(ApiGate, access=Access(token, exposed))
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(allowed_hosts))
    app.include_router(session_routes(sessions, telemetry))
    app.add_exception_handler(SessionStoreError, store_away)

    @app.get("/health")
    async def health() -> JSONResponse:
        """State of the router and of its backends."""
        return JSONResponse(status.health())

    @app.get("/ready")
    async def ready() -> JSONResponse:
        """200 once requests can be routed, 503 before and while draining."""
        is_ready = status.ready()
        return JSONResponse({"ready": is_ready}, status_code=200 if is_ready else 503)

    @app.get("/api/decisions")
    async def decisions(limit: Annotated[int, Query(ge=1, le=1000)] = 20) -> JSONResponse:
        """The last decisions, newest first, each with every candidate, filter and score. Holds no prompt."""
        return JSONResponse({"decisions": status.recent(limit)})

    @app.get("/metrics")
    async def metrics() -> Response:
        """Prometheus text format."""
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return app
