"""A backend that writes prepared bytes: for answers that no HTTP library would send."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from tests.envoy.envoygen.stand import FakeBackend

CUT: Final = None
"""In the place of a piece: the connection is reset there."""
EVENTS: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
CHUNKED: Final = EVENTS + b"transfer-encoding: chunked\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """``data`` as a chunk of HTTP/1.1."""
    return b"%x\r\n%s\r\n" % (len(data), data)


@dataclass(slots=True)
class RawBackend:
    """Answers each request with ``pieces``, one write each, and closes the connection. From the second piece on, each
    waits for a permit of ``go_on``."""

    pieces: Sequence[bytes | None] = ()
    go_on: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    place: FakeBackend = field(default_factory=lambda: FakeBackend("a"))

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Listens on the port of ``place``, which a stand takes as an unstarted backend."""
        async with await asyncio.start_server(self._handle, "127.0.0.1", self.place.port) as server:
            yield
            server.close()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"GET /health"):
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            else:
                await reader.readexactly(len(b"{}"))
                await self._answer(writer)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter) -> None:
        for number, piece in enumerate(self.pieces):
            if number:
                await self.go_on.acquire()
            if piece is CUT:
                writer.transport.abort()
                return
            writer.write(piece)
            await writer.drain()
