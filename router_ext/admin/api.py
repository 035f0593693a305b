"""The admin application: health, readiness, metrics, decisions, and the routes that are given to it."""

from collections.abc import Callable
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, FastAPI, Query, Response
from fastapi.responses import JSONResponse
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.middleware import Middleware

from router_ext.admin import errors, sessions
from router_ext.admin.access import Access, ApiGate
from router_ext.admin.audit import AuditSink
from router_ext.admin.body_limit import MAX_BODY_BYTES, BodyLimit
from router_ext.admin.document import describe
from router_ext.admin.explain import decision_routes
from router_ext.admin.parameters import refuse_unknown
from router_ext.admin.shapes.status import HealthShown, ReadyShown
from router_ext.admin.stats import stats_routes
from router_ext.admin.status import StatusSource
from router_ext.ports import SessionStoreError
from router_ext.version import __version__

_PROMETHEUS: Final = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}


def _no_conversation() -> int:
    return MAX_BODY_BYTES


def admin_app(
    status: StatusSource,
    access: Access,
    *routes: APIRouter,
    audit: AuditSink | None = None,
    inner: Middleware | None = None,
    max_conversation_bytes: Callable[[], int] = _no_conversation,
) -> FastAPI:
    """The application. ``access`` is asked first, whatever the path; then the size of the body is bounded, to that of a
    client's request (``max_conversation_bytes``) where a session is begun. ``inner`` sees what may pass before the
    routes do.
    """
    app = FastAPI(
        title="router_ext admin",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(refuse_unknown)],
    )

    def limit(method: str, path: str) -> int:
        return max_conversation_bytes() if (method, path) == ("POST", sessions.PATH) else MAX_BODY_BYTES

    for router in (_status_routes(status), stats_routes(status), decision_routes(status), *routes):
        app.include_router(router)
    if inner is not None:
        app.add_middleware(inner.cls, *inner.args, **inner.kwargs)
    app.add_middleware(BodyLimit, limit=limit)
    app.add_middleware(ApiGate, access=access)
    app.add_exception_handler(SessionStoreError, sessions.store_away)
    errors.install(app, audit)
    describe(app)
    return app


def _status_routes(status: StatusSource) -> APIRouter:
    router = APIRouter()

    @router.get("/health", response_model=HealthShown, response_model_exclude_unset=True, tags=["status"])
    async def show_health() -> dict[str, Any]:
        """State of the router and of its backends. Always 200."""
        return await status.health()

    @router.get("/ready", response_model=ReadyShown, responses={503: {"model": ReadyShown}}, tags=["status"])
    async def show_ready() -> JSONResponse:
        """200 once requests can be routed, 503 before and while draining."""
        is_ready = await status.ready()
        return JSONResponse({"ready": is_ready}, status_code=200 if is_ready else 503)

    @router.get(
        "/metrics", response_class=Response, response_model=None, responses={200: _PROMETHEUS[200]}, tags=["status"]
    )
    async def show_metrics(name: Annotated[list[str] | None, Query(alias="name[]")] = None) -> Response:
        """Prometheus text format; with ``name[]`` the families of these names only."""
        return Response(await status.metrics(name or ()), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return router
