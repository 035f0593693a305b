"""Who may use the admin port: on the whole application, so that no spelling of a path goes around it."""

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from router_ext.admin.actor import LOOPBACK, Actor, forwarded_actor, peer_of, put_actor
from router_ext.admin.refusal import refusal
from router_ext.config.problem import ConfigError, Problem
from router_ext.config.url import is_loopback
from router_ext.model.secret import Secret

TOKEN_VARIABLE: Final = "ROUTER_API_TOKEN"  # noqa: S105 - the variable's name

OPEN_PATHS: Final = frozenset({"/health", "/ready", "/metrics"})
"""What probes and Prometheus ask, without a login. Exactly these: a slash more is another path."""

_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,4096}")
_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]@/\\?#]+)(?::[0-9]{1,5})?")
_FOREIGN_SITES: Final = frozenset({"cross-site", "same-site"})
_FINGERPRINT_DIGITS: Final = 8


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
        return None

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


def holds(authorization: str, token: Secret) -> bool:
    """True when the value of an ``Authorization`` header carries the token."""
    scheme, _, given = authorization.partition(" ")
    # In constant time, so that the time of a refusal tells nothing of the token but its length.
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.reveal().encode())


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
