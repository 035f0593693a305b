"""The HTTP client of the egress listener."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

import aiohttp
from yarl import URL

from router_ext.engine.credentials import credential_edits
from router_ext.model import headers
from router_ext.model.backend import Backend
from router_ext.ports import Call, CutError, UnreachableError, UpstreamAnswer

MAX_ANSWER_BYTES: Final = 4 << 20
"""Longest answer that is read; enough for any metrics page."""


_UNLIMITED: Final = aiohttp.ClientTimeout(total=None, sock_connect=2.0)

_OF_THE_CONNECTION: Final = frozenset(
    {
        "connection",
        "content-length",
        "date",
        "keep-alive",
        "server",
        "transfer-encoding",
        "upgrade",
        headers.EGRESS_FLAGS,
    }
)
"""Headers that say something of one connection, or that the next hop sets itself."""


class EgressUnavailableError(Exception):
    """Envoy's egress listener does not answer: nothing is known about the backend."""


@dataclass(frozen=True, slots=True)
class EgressAnswer:
    """A backend's answer. ``flags`` are Envoy's response flags: none for an answer of the backend itself."""

    status: int
    flags: tuple[str, ...]
    body: bytes

    @property
    def unreachable(self) -> bool:
        """True when Envoy could not connect, or does not know the backend's cluster yet."""
        return any(flag in self.flags for flag in ("UF", "NC", "DF", "UH"))


class EgressStream:
    """A backend's answer as it comes."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer
        self.status: Final = answer.status
        # Latin-1 keeps every byte, as it does where Envoy is told of the header.
        pairs = ((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in answer.raw_headers)
        self.headers: Final = tuple((name, value) for name, value in pairs if name not in _OF_THE_CONNECTION)
        self.flags: Final = headers.read_flags(answer.headers.get(headers.EGRESS_FLAGS, ""))

    def header(self, name: str) -> str:
        """The first value of a header, "" when it is missing."""
        return next((value for key, value in self.headers if key == name), "")

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises CutError when it breaks off."""
        try:
            async for piece in self._answer.content.iter_any():
                yield piece
        except aiohttp.ClientError as error:
            raise CutError(str(error)) from error


class EgressClient:
    """Asks backends by way of Envoy. Use it as an async context manager."""

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}"
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            auto_decompress=False,
            skip_auto_headers=("User-Agent", "Accept-Encoding"),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, backend: Backend, path: str, timeout_s: float) -> EgressAnswer:
        """GETs a path of the backend's root, with its key.

        Raises ``TimeoutError`` when the backend is silent for that long, ``EgressUnavailableError`` when Envoy is.
        """
        keys, _ = credential_edits(backend)
        sent = {headers.CLUSTER: backend.cluster, "accept-encoding": "identity", **dict(keys)}
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        try:
            async with self._open_session.get(self._base + path, headers=sent, timeout=timeout) as answer:
                flags = headers.read_flags(answer.headers.get(headers.EGRESS_FLAGS, ""))
                return EgressAnswer(answer.status, flags, await _bounded_body(answer))
        except aiohttp.ClientError as error:
            raise EgressUnavailableError(str(error)) from error

    @asynccontextmanager
    async def post(self, call: Call) -> AsyncIterator[UpstreamAnswer]:
        """Sends a request of the router's own; see ``ports.Dispatcher``."""
        sent = [
            (headers.CLUSTER, call.backend.cluster),
            ("x-request-id", call.request_id),
            ("accept-encoding", "identity"),
            *call.headers,
        ]
        url = URL(self._base + call.target, encoded=True)
        try:
            answer = await self._open_session.post(url, headers=sent, data=call.body, timeout=_UNLIMITED)
        except aiohttp.ClientError as error:
            raise UnreachableError(str(error)) from error
        try:
            yield EgressStream(answer)
        finally:
            # Returns the connection to the pool after a whole answer, and closes it in the middle of one.
            answer.release() if answer.content.at_eof() else answer.close()

    @property
    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("EgressClient is used outside its context")
        return self._session


async def _bounded_body(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) >= MAX_ANSWER_BYTES:
            break
    return bytes(body[:MAX_ANSWER_BYTES])
