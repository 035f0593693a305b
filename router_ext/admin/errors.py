"""What the framework refuses by itself, in the form of every other error: nothing of a request is quoted."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from router_ext.admin.actor import actor_of
from router_ext.admin.audit import Action, Attempt, AuditSink
from router_ext.admin.refusal import RefusedError, refusal
from router_ext.config.problem import Problem
from router_ext.config.wording import plain_key

MAX_PROBLEMS: Final = 50
"""Most findings that one answer lists."""

_KNOWN: Final = {
    404: ("not_found", "There is no such path."),
    405: ("method_not_allowed", "The path does not take this method."),
    413: ("body_too_large", "The body is too large."),
}
_ACTIONS: Final = frozenset(action.value for action in Action)
_UNREADABLE: Final = "invalid_body", "The body cannot be read."


def install(app: FastAPI, audit: AuditSink | None) -> None:
    """Gives ``app`` its error answers. ``audit`` is told of changes that do not fit, None where nothing is changed."""

    async def unfit(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        refused = RefusedError(
            422, "invalid_request", "The request does not fit: see problems.", problems=problems_of(error.errors())
        )
        _tell(audit, request, refused)
        return refused.answer()

    app.add_exception_handler(RequestValidationError, unfit)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RefusedError, _refused)


def problems_of(errors: Sequence[Mapping[str, Any]]) -> tuple[Problem, ...]:
    """What pydantic found, by place. Its own words never hold a value; the value it holds beside them is left out."""
    return tuple(Problem(_path(error["loc"]), 0, str(error["msg"])) for error in errors[:MAX_PROBLEMS])


def _path(loc: Sequence[object]) -> str:
    """``body.spec.aliases[0]``; an odd key, which may be anything, is cut short."""
    path = ""
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{plain_key(str(part))}"
    return path.lstrip(".")


def _tell(audit: AuditSink | None, request: Request, refused: RefusedError) -> None:
    """Of a request that would have changed something. Its values are not read: nobody says what they are."""
    name = getattr(request.scope.get("route"), "name", "")
    if audit is not None and name in _ACTIONS:
        Attempt(audit, actor_of(request), Action(name), "", dry_run=False).refused(refused)


async def _http(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    code, message = _KNOWN.get(error.status_code, _UNREADABLE)
    return refusal(error.status_code, code, message, error.headers)


async def _refused(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RefusedError)
    return error.answer()
