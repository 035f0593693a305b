"""Who may use the paths below ``/api``: whoever has the token of the environment, where there is one."""

from dataclasses import dataclass
from typing import Final

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from router_ext.admin.refusal import refusal
from router_ext.config.api_token import TOKEN_VARIABLE, holds, token_from
from router_ext.model.secret import Secret

__all__ = ["TOKEN_VARIABLE", "Access", "ApiGate", "token_from"]

_API: Final = "/api"
_SESSIONS: Final = "/api/sessions"
_READING: Final = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True)
class Access:
    """With a ``token`` every path below ``/api`` needs it. Without one there is no login, so on an address that other
    machines reach (``exposed``) nothing can be changed there and sessions cannot be listed.
    """

    token: Secret | None
    exposed: bool

    def refusal(self, method: str, path: str, authorization: str) -> JSONResponse | None:
        """Why a request may not pass; None when it may. ``authorization`` is the header's value, "" without it."""
        if not _is_below(path, _API):
            return None
        if self.token is not None:
            return None if holds(authorization, self.token) else _unauthorized()
        return _token_needed() if self.exposed and _needs_token(method, path) else None


class ApiGate:
    """ASGI middleware that keeps refused requests from the application, whatever routes it has."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers, or lets the application do so."""
        refused = self._refusal(scope) if scope["type"] == "http" else None
        await (refused or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        authorization = Headers(scope=scope).get("authorization", "")
        return self._access.refusal(scope["method"], scope["path"], authorization)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _needs_token(method: str, path: str) -> bool:
    return method not in _READING or _is_below(path, _SESSIONS)


def _unauthorized() -> JSONResponse:
    message = f"This path needs the token of {TOKEN_VARIABLE}: Authorization: Bearer TOKEN."
    return refusal(401, "invalid_token", message, {"www-authenticate": "Bearer"})


def _token_needed() -> JSONResponse:
    message = f"Other machines can reach this port, and it has no login: set {TOKEN_VARIABLE} to use this path."
    return refusal(403, "token_not_set", message)
