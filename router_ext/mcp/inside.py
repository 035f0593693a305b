"""The admin API of this process, asked without a network."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

import httpx2
import orjson
from starlette.requests import Request
from starlette.types import ASGIApp

from router_ext.mcp.port import DEADLINE_S, SLOW, AwayError, Reply

_CREDENTIALS: Final = ("authorization", "host")


class InsideAdmin:
    """Implements ``Admin`` for whoever sent ``request``: the application sees the same caller, address and token, so a
    tool may do what its caller may, and the audit tells of them.
    """

    def __init__(self, app: ASGIApp, request: Request) -> None:
        self._headers = {name: request.headers[name] for name in _CREDENTIALS if name in request.headers}
        client = request.client
        peer = ("", 0) if client is None else (client.host, client.port)
        self._transport = httpx2.ASGITransport(app, client=peer)

    async def call(self, method: str, path: str, query: Mapping[str, str], body: Any | None) -> Reply:
        """See ``Admin``."""
        url = httpx2.URL("http://localhost" + path, params=dict(query))
        content = None if body is None else json.dumps(body).encode()
        headers = self._headers if body is None else {**self._headers, "content-type": "application/json"}
        try:
            async with asyncio.timeout(DEADLINE_S):
                answer = await self._transport.handle_async_request(
                    httpx2.Request(method, url, headers=headers, content=content)
                )
                return _reply(answer.status_code, await answer.aread())
        except TimeoutError:
            raise AwayError(f"The router took more than {DEADLINE_S:.0f} s. {SLOW}") from None


def _reply(status: int, body: bytes) -> Reply:
    """What is not JSON is no answer of the API but the failure of one."""
    try:
        return Reply(status, orjson.loads(body))
    except orjson.JSONDecodeError:
        return Reply(status, None)
