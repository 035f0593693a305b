"""Sessions in the admin API: what is kept, without any content, and how to destroy one."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from router_ext.admin.refusal import refusal
from router_ext.model.session import SESSION_ID, SessionMeta
from router_ext.ports import SessionStore, Telemetry

_RETRY_AFTER_S: Final = 2


def session_routes(sessions: Callable[[], SessionStore | None], telemetry: Telemetry) -> APIRouter:
    """The routes. ``sessions`` gives None while they are not enabled. A request may raise SessionStoreError."""
    router = APIRouter(prefix="/api")

    @router.get("/sessions")
    async def listed(limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> JSONResponse:
        """Sessions, most recently used first. Holds no message and nothing of the owner."""
        if (store := sessions()) is None:
            return _disabled()
        return JSONResponse({"sessions": [_shown(meta) for meta in await store.listed(limit)]})

    @router.delete("/sessions")
    async def delete(id: str = "") -> JSONResponse:  # noqa: A002 - the name of the query parameter
        """Destroys a session, whoever owns it."""
        if (store := sessions()) is None:
            return _disabled()
        if not SESSION_ID.fullmatch(id):
            return refusal(400, "invalid_session_id", "The parameter id must be a session's id: sess_ and a UUID.")
        if not await store.delete(id):
            return refusal(404, "session_not_found", "There is no such session.")
        telemetry.session_evicted("deleted")
        return JSONResponse({"deleted": True})

    return router


async def store_away(_request: Request, _error: Exception) -> JSONResponse:
    """What SessionStoreError is answered with."""
    headers = {"retry-after": str(_RETRY_AFTER_S)}
    return refusal(503, "session_store_unavailable", "The session store does not answer.", headers)


def _disabled() -> JSONResponse:
    return refusal(404, "sessions_disabled", "Sessions are not enabled on this router.")


def _shown(meta: SessionMeta) -> dict[str, str | int]:
    return {
        "id": meta.id,
        "tokens": meta.tokens,
        "turns": meta.turns,
        "bytes": meta.bytes,
        "created": _utc(meta.created_s),
        "last_used": _utc(meta.used_s),
    }


def _utc(seconds: float) -> str:
    """ISO 8601 in UTC with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
