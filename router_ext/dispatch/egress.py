"""The HTTP client of the egress listener."""

from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

import aiohttp

from router_ext.engine.credentials import credential_edits
from router_ext.model import headers
from router_ext.model.backend import Backend

MAX_ANSWER_BYTES: Final = 4 << 20
"""Longest answer that is read; enough for any metrics page."""


class EgressUnavailableError(Exception):
    """Envoy's egress listener does not answer: nothing is known about the backend."""


@dataclass(frozen=True, slots=True)
class EgressAnswer:
    """A backend's answer. ``flags`` are Envoy's response flags: ``-`` for an answer of the backend itself."""

    status: int
    flags: str
    body: bytes

    @property
    def unreachable(self) -> bool:
        """True when Envoy could not connect, or does not know the backend's cluster yet."""
        return any(flag in self.flags.split(",") for flag in ("UF", "NC", "DF", "UH"))


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
        if self._session is None:
            raise RuntimeError("EgressClient is used outside its context")
        keys, _ = credential_edits(backend)
        sent = {headers.CLUSTER: backend.cluster, "accept-encoding": "identity", **dict(keys)}
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        try:
            async with self._session.get(self._base + path, headers=sent, timeout=timeout) as answer:
                flags = answer.headers.get(headers.EGRESS_FLAGS, "-")
                return EgressAnswer(answer.status, flags, await _bounded_body(answer))
        except aiohttp.ClientError as error:
            raise EgressUnavailableError(str(error)) from error


async def _bounded_body(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) >= MAX_ANSWER_BYTES:
            break
    return bytes(body[:MAX_ANSWER_BYTES])
