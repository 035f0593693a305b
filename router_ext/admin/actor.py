"""Who asks for a change, as the audit says it."""

from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Scope

LOOPBACK: Final = "loopback"
"""Somebody on this machine, where there is no token."""

WHO_HEADER: Final = "x-kronaxis-admin-who"
PEER_HEADER: Final = "x-kronaxis-admin-peer"
"""What a supervisor tells its workers. A worker's socket is the only place where they count."""

_KEY: Final = "router_ext.actor"


@dataclass(frozen=True, slots=True)
class Actor:
    """``who`` is ``loopback`` or ``token:`` and a fingerprint, ``peer`` the address that the request came from."""

    who: str
    peer: str


UNKNOWN: Final = Actor("unknown", "")


def peer_of(scope: Scope) -> str:
    """The address of the other end of the connection, "" for a Unix socket."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def forwarded_actor(scope: Scope) -> Actor:
    """Who a supervisor says it is."""
    headers = Headers(scope=scope)
    return Actor(headers.get(WHO_HEADER, UNKNOWN.who), headers.get(PEER_HEADER, UNKNOWN.peer))


def put_actor(scope: Scope, actor: Actor) -> None:
    """Remembers who sends this request."""
    scope[_KEY] = actor


def actor_of(request: Request) -> Actor:
    """Who sent a request."""
    actor = request.scope.get(_KEY)
    return actor if isinstance(actor, Actor) else UNKNOWN
