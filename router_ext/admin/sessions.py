"""Sessions in the admin API: what is kept, without any content, how to begin one, and how to destroy one."""

from collections.abc import Callable
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from router_ext.admin.actor import actor_of
from router_ext.admin.audit import Action, Attempt
from router_ext.admin.new_session import SessionDesk, disabled
from router_ext.admin.operations import DryRun, errors
from router_ext.admin.refusal import RefusedError, refusal
from router_ext.admin.shapes.sessions import NewSession, SessionCreated, SessionDeleted, SessionList, SessionShown
from router_ext.admin.views import utc
from router_ext.model.session import SESSION_ID, SessionMeta
from router_ext.ports import SessionStore, SessionStoreError

PATH: Final = "/api/sessions"

_RETRY_AFTER_S: Final = 2


def session_routes(source: Callable[[], SessionDesk]) -> APIRouter:
    """The routes. ``source`` is asked at each request. A request may raise SessionStoreError."""
    router = APIRouter(prefix="/api", tags=["sessions"])

    @router.get("/sessions", response_model=SessionList, responses=errors(404, 503))
    async def list_sessions(limit: Annotated[int, Query(ge=1, le=1000)] = 100) -> SessionList:
        """Sessions, most recently used first. Holds no message and nothing of the owner."""
        return SessionList(sessions=[_shown(meta) for meta in await _store(source()).listed(limit)])

    @router.post("/sessions", status_code=201, response_model=SessionCreated, responses=errors(404, 413, 503))
    async def create_session(request: Request, wanted: NewSession, dry_run: DryRun = False) -> SessionCreated:
        """Begins a session from messages. Whoever sends the same service and credential can go on with it."""
        desk = source()
        attempt = Attempt(desk.sink, actor_of(request), Action.CREATE_SESSION, wanted.service, dry_run)
        try:
            created = await desk.create(wanted, dry_run=dry_run)
        except (RefusedError, SessionStoreError) as error:
            raise _told(attempt, error) from None
        attempt.succeeded(changed=created.created, before=None, after=created)
        return created

    @router.delete("/sessions", response_model=SessionDeleted, responses=errors(400, 404, 503))
    async def delete_session(
        request: Request,
        id: str = "",  # noqa: A002 - the parameter's name
        dry_run: DryRun = False,
    ) -> SessionDeleted:
        """Destroys a session, whoever owns it."""
        desk = source()
        attempt = Attempt(desk.sink, actor_of(request), Action.DELETE_SESSION, id, dry_run)
        try:
            deleted = await _delete(desk, id, dry_run=dry_run)
        except (RefusedError, SessionStoreError) as error:
            raise _told(attempt, error) from None
        attempt.succeeded(changed=True, before=None, after=None)
        return deleted

    return router


async def store_away(_request: Request, _error: Exception) -> JSONResponse:
    """What SessionStoreError is answered with."""
    error = _away()
    return refusal(error.status, error.code, error.message, error.headers)


def _told(attempt: Attempt, error: RefusedError | SessionStoreError) -> RefusedError:
    refused = error if isinstance(error, RefusedError) else _away()
    attempt.refused(refused)
    return refused


def _away() -> RefusedError:
    headers = {"retry-after": str(_RETRY_AFTER_S)}
    return RefusedError(503, "session_store_unavailable", "The session store does not answer.", headers=headers)


async def _delete(desk: SessionDesk, session_id: str, *, dry_run: bool) -> SessionDeleted:
    store = _store(desk)
    if not SESSION_ID.fullmatch(session_id):
        message = "The parameter id must be a session's id: sess_ and a UUID."
        raise RefusedError(400, "invalid_session_id", message)
    if not await (store.holds(session_id) if dry_run else store.delete(session_id)):
        raise RefusedError(404, "session_not_found", "There is no such session.")
    if not dry_run:
        desk.telemetry.session_evicted("deleted")
    return SessionDeleted(deleted=not dry_run, dry_run=dry_run)


def _store(desk: SessionDesk) -> SessionStore:
    store = desk.store()
    if store is None:
        raise disabled()
    return store


def _shown(meta: SessionMeta) -> SessionShown:
    return SessionShown(
        id=meta.id,
        tokens=meta.tokens,
        turns=meta.turns,
        bytes=meta.bytes,
        created=utc(meta.created_s),
        last_used=utc(meta.used_s),
    )
