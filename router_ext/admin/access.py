"""Who may use the admin port: on the whole application, so that no spelling of a path goes around it."""

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from router_ext.admin.actor import LOOPBACK, Actor, forwarded_actor, peer_of, put_actor
from router_ext.admin.refusal import refusal
from router_ext.config.api_token import TOKEN_VARIABLE, holds, token_from
from router_ext.config.problem import ConfigError, Problem
from router_ext.config.url import is_loopback
from router_ext.model.secret import Secret

__all__ = ["TOKEN_VARIABLE", "Access", "ApiGate", "holds", "token_from"]

OPEN_PATHS: Final = frozenset({"/health", "/ready", "/metrics"})
"""What probes and Prometheus ask, without a login. Exactly these: a slash more is another path."""

_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]@/\\?#]+)(?::[0-9]{1,5})?")
_FOREIGN_SITES: Final = frozenset({"cross-site", "same-site"})
_FINGERPRINT_DIGITS: Final = 8


@dataclass(frozen=True, slots=True)
class Access:
    """With a ``token`` every path but the open ones needs it. Without one there is no login, so an address that other
    machines reach (``exposed``) needs one: ConfigError.

    ``supervised`` is for a worker, whose socket nobody but its supervisor reaches: what that says of the caller holds.
    """

    token: Secret | None
    exposed: bool
    supervised: bool = False

    def __post_init__(self) -> None:
        if self.exposed and self.token is None:
            message = "must be set: server.admin_host is an address that other machines reach (or use 127.0.0.1)"
            raise ConfigError("environment", [Problem(f"env {TOKEN_VARIABLE}", 0, message)])

    def refusal(self, path: str, headers: Headers) -> JSONResponse | None:
        """Why a request may not pass; None when it may. ``path`` is the one that routes are found by."""
        # So that no web page reaches an address of this machine by a name of its own that leads there.
        if not (self.exposed or is_loopback(_host_name(headers.get("host", "")))):
            return refusal(400, "invalid_host", "The Host header names another machine, or none.")
        if path in OPEN_PATHS:
            return None
        if _is_foreign(headers):
            return refusal(403, "foreign_origin", "Web pages of other sites may not use this API.")
        if self.token is not None and not holds(headers.get("authorization", ""), self.token):
            return _unauthorized()
        # Routes are found by patterns that overlook a line end: %0A behind a name would be the name without it.
        return None if path.isprintable() else refusal(404, "not_found", "There is no such path.")

    def actor(self, scope: Scope) -> Actor:
        """Who sends a request that passed."""
        if self.supervised:
            return forwarded_actor(scope)
        who = LOOPBACK if self.token is None else f"token:{_fingerprint(self.token)}"
        return Actor(who, peer_of(scope))


class ApiGate:
    """ASGI middleware that keeps refused requests from the application, whatever routes it has."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers, or lets the application do so. What is neither HTTP nor the server's start and end is dropped."""
        if scope["type"] == "http":
            refused = self._access.refusal(scope["path"], Headers(scope=scope))
            if refused is not None:
                await refused(scope, receive, send)
                return
            put_actor(scope, self._access.actor(scope))
        if scope["type"] in ("http", "lifespan"):
            await self._app(scope, receive, send)


def _host_name(host: str) -> str:
    """The name or address in a Host header, without port and brackets; "" when it has another form."""
    found = _HOST.fullmatch(host)
    return found[1].strip("[]") if found else ""


def _is_foreign(headers: Headers) -> bool:
    """True for a request that a browser sends for a page of another site. Other clients send neither header."""
    if headers.get("sec-fetch-site", "").lower() in _FOREIGN_SITES:
        return True
    origin = headers.get("origin")
    if origin is None:
        return False
    scheme, _, authority = origin.lower().partition("://")
    return scheme not in ("http", "https") or authority != headers.get("host", "").lower()


def _fingerprint(token: Secret) -> str:
    """Tells two tokens apart in a log; 32 bits of a digest say nothing of a token that cannot be guessed."""
    return sha256(token.reveal().encode()).hexdigest()[:_FINGERPRINT_DIGITS]


def _unauthorized() -> JSONResponse:
    message = f"This path needs the token of {TOKEN_VARIABLE}: Authorization: Bearer TOKEN."
    return refusal(401, "invalid_token", message, {"www-authenticate": "Bearer"})
