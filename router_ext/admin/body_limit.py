"""Bounds request bodies before anything reads them."""

from collections.abc import Callable
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from router_ext.admin.refusal import refusal

MAX_BODY_BYTES: Final = 2**20
"""Largest body of a request, but of one that brings a conversation."""


class BodyLimit:
    """ASGI middleware that reads a body before the application does, and answers 413 for one over ``limit`` bytes of
    its method and path.
    """

    def __init__(self, app: ASGIApp, limit: Callable[[str, str], int]) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers, or hands the whole body on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limit(scope["method"], scope["path"])
        body = None if _declared(scope) > limit else await _read(receive, limit)
        if body is None:
            message = f"The body is larger than {limit} bytes."
            await refusal(413, "body_too_large", message, {"connection": "close"})(scope, receive, send)
            return
        await self._app(scope, _replayed(body, receive), send)


def _declared(scope: Scope) -> int:
    """What the client says the size is, 0 when it does not; the server has checked that it is a number."""
    length = Headers(scope=scope).get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() else 0


async def _read(receive: Receive, limit: int) -> bytes | None:
    """The body, None for one that is too large. One that breaks off is shorter, and nobody waits for its answer."""
    parts, size = list[bytes](), 0
    while True:
        message = await receive()
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            return None
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body in one piece, then what the server says next."""
    given = False

    async def next_message() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return next_message
