"""Who may use the paths below ``/api``: whoever has the token of the environment, where there is one."""

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from router_ext.admin.refusal import refusal
from router_ext.config.problem import ConfigError, Problem
from router_ext.model.secret import Secret

TOKEN_VARIABLE: Final = "ROUTER_API_TOKEN"  # noqa: S105 - the variable's name

_API: Final = "/api"
_SESSIONS: Final = "/api/sessions"
_READING: Final = frozenset({"GET", "HEAD"})
_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,4096}")


def token_from(environ: Mapping[str, str]) -> Secret | None:
    """The token, None when the variable is not set or empty. Raises ConfigError for one that no header can carry."""
    value = environ.get(TOKEN_VARIABLE)
    if not value:
        return None
    if not _TOKEN.fullmatch(value):
        message = "must be 1 to 4096 printable ASCII characters without a space or a line end"
        raise ConfigError("environment", [Problem(f"env {TOKEN_VARIABLE}", 0, message)])
    return Secret(value, f"env:{TOKEN_VARIABLE}")


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
            return None if _holds(authorization, self.token) else _unauthorized()
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


def _holds(authorization: str, token: Secret) -> bool:
    scheme, _, given = authorization.partition(" ")
    # In constant time, so that the time of a refusal tells nothing of the token but its length.
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.reveal().encode())


def _unauthorized() -> JSONResponse:
    message = f"This path needs the token of {TOKEN_VARIABLE}: Authorization: Bearer TOKEN."
    return refusal(401, "invalid_token", message, {"www-authenticate": "Bearer"})


def _token_needed() -> JSONResponse:
    message = f"Other machines can reach this port, and it has no login: set {TOKEN_VARIABLE} to use this path."
    return refusal(403, "token_not_set", message)
