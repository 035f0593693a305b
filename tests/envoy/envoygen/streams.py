"""Event streams through Envoy, piece by piece: what the client gets, and how the access log says that they ended."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.envoy.envoygen.fake_processor import FakeProcessor, Plan
from tests.envoy.envoygen.stand import FakeBackend, Stand, eventually, stand

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
RESPONSES = "/v1/responses"
MESSAGES = "/v1/messages"
TO_A = Plan({"x-kronaxis-cluster": "backend-a"})


@dataclass(slots=True)
class Paced:
    """Writes ``pieces``, each only when the client has received the ones before."""

    pieces: Sequence[bytes] = ()
    received: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def stream(self, _: web.Request) -> AsyncIterator[bytes]:
        """The answer of a ``FakeBackend``."""
        sent = 0
        for piece in self.pieces:
            async with self.changed:
                await self.changed.wait_for(lambda expected=sent: self.received >= expected)  # type: ignore[misc]
            yield piece
            sent += len(piece)

    async def receive(self, size: int) -> None:
        """The client has ``size`` more bytes."""
        async with self.changed:
            self.received += size
            self.changed.notify_all()


@dataclass(slots=True)
class Streams:
    """One stand, through which one stream after the other goes."""

    stand: Stand
    processor: FakeProcessor
    paced: Paced

    async def send(self, pieces: Sequence[bytes], path: str = CHAT) -> bytes:
        """The body that the client gets when a backend sends these pieces."""
        self.paced.pieces, self.paced.received = pieces, 0
        body = b""
        async with self.stand.client.post(self.stand.url + path, data=b"{}") as answer:
            async for piece in answer.content.iter_any():
                body += piece
                await self.paced.receive(len(piece))
        return body

    async def ends(self, count: int) -> list[str]:
        """How the ``count`` streams so far ended, in order; "" where nothing is said."""
        await eventually(lambda: len(self.processor.log_entries) >= count, "access log entries")
        assert self.stand.envoy.stat("http.ingress.lua.errors") == 0
        return [end_of(entry) for entry in self.processor.log_entries]


@asynccontextmanager
async def streams(logs: Path, processor: FakeProcessor | None = None) -> AsyncIterator[Streams]:
    """A stand with a backend that writes what it is told."""
    paced, processor = Paced(), processor or FakeProcessor(TO_A)
    async with stand(logs, FakeBackend("a", stream=paced.stream), processor=processor) as s:
        yield Streams(s, processor, paced)


async def end_of_each(logs: Path, cases: Mapping[str, tuple[str, bytes]]) -> dict[str, str]:
    """How the stream of each named case (a path, and a body in one piece) ended."""
    async with streams(logs) as s:
        for path, body in cases.values():
            await s.send([body], path)
        return dict(zip(cases, await s.ends(len(cases)), strict=True))


def end_of(entry: Any) -> str:
    """``stream_end`` of an access log entry."""
    spaces = entry.common_properties.metadata.filter_metadata
    end: str = spaces["router_ext.usage"]["stream_end"] if _has(spaces, "stream_end") else ""
    return end


def _has(spaces: Any, name: str) -> bool:
    return "router_ext.usage" in spaces and name in spaces["router_ext.usage"]
