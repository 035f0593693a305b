"""The admin API of a router that runs somewhere else, over HTTP."""

import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self

import aiohttp
import orjson
from yarl import URL

from router_ext.mcp.port import DEADLINE_S, MAX_ANSWER_BYTES, SLOW, AwayError, Reply
from router_ext.model.secret import Secret

_PIECE: Final = 64 * 1024


class RemoteAdmin:
    """Implements ``Admin``; an async context manager that holds the connections. ``token`` None sends none."""

    def __init__(self, url: URL, token: Secret | None) -> None:
        self._url = url
        self._headers = {"authorization": f"Bearer {token.reveal()}"} if token is not None else {}

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=DEADLINE_S)
        self._session = aiohttp.ClientSession(headers=self._headers, timeout=timeout)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def call(self, method: str, path: str, query: Mapping[str, str], body: Any | None) -> Reply:
        """See ``Admin``."""
        url = URL(f"{self._url}{path}", encoded=True).with_query(query or None)
        data = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"content-type": "application/json"}
        try:
            # Not followed: the token would go where the other end says.
            async with self._session.request(method, url, data=data, headers=headers, allow_redirects=False) as answer:
                if 300 <= answer.status < 400:
                    raise _NotAdminError
                return Reply(answer.status, _parsed(await _read(answer)))
        except TimeoutError:
            raise AwayError(f"The router at {self._url} took more than {DEADLINE_S:.0f} s. {SLOW}") from None
        except (aiohttp.ClientError, OSError):
            raise AwayError(self._away()) from None
        except _NotAdminError:
            raise AwayError(f"What answers at {self._url} is not a router's admin API: see --admin.") from None

    def _away(self) -> str:
        return (
            f"No router answers at {self._url}. Start it with `router-ext serve router.yaml`, or start this MCP server "
            "with --admin and the address of the router's admin port (server.admin_port)."
        )


class _NotAdminError(Exception):
    """An answer that no admin API gives."""


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    parts, size = list[bytes](), 0
    async for part in answer.content.iter_chunked(_PIECE):
        size += len(part)
        if size > MAX_ANSWER_BYTES:
            raise _NotAdminError
        parts.append(part)
    return b"".join(parts)


def _parsed(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        raise _NotAdminError from None
