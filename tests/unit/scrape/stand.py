"""Probers, a scripted page server and a sink for scrapers under test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import aiohttp

from router_ext.config.sections import RouterConfig, Server
from router_ext.dispatch.egress import EgressAnswer, EgressUnavailableError
from router_ext.health.load import QueueReading
from router_ext.model.backend import Backend, BackendType, Endpoint
from tests.fakes import domain

INTERVAL_S = 0.05


class DirectProber:
    """Implements ``Prober`` without Envoy: asks the backend's own address. Use it as an async context manager."""

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def get(self, backend: Backend, path: str, timeout_s: float) -> EgressAnswer:
        """The whole answer."""
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        try:
            async with self._session.get(f"{backend.endpoint}{path}", timeout=timeout) as answer:
                return EgressAnswer(answer.status, (), await answer.read())
        except aiohttp.ClientError as error:
            raise EgressUnavailableError(str(error)) from error


@dataclass(slots=True)
class CannedProber:
    """Implements ``Prober`` with one answer for all, and keeps what it was asked."""

    answer: EgressAnswer | Exception
    asked: list[tuple[str, str, float]] = field(default_factory=list)

    async def get(self, backend: Backend, path: str, timeout_s: float) -> EgressAnswer:
        """The answer, or its error."""
        self.asked.append((backend.name, path, timeout_s))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class PageServer:
    """Answers every request with ``raw``, the bytes of a whole response; None never answers."""

    def __init__(self, raw: bytes | None) -> None:
        self.raw = raw
        self.port = 0
        self._ended = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._server.close()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if self.raw is None:
            await self._ended.wait()
        else:
            writer.write(self.raw)
        writer.close()


@dataclass(slots=True)
class RecordingSink:
    """Implements ``QueueSink``: keeps every call in order."""

    reports: list[tuple[str, QueueReading | None, float]] = field(default_factory=list)
    errors: list[tuple[str, int]] = field(default_factory=list)

    def report(self, backend: str, reading: QueueReading | None, now: float) -> None:
        """Keeps the report."""
        self.reports.append((backend, reading, now))

    def page_errors(self, backend: str, count: int) -> None:
        """Keeps the count."""
        self.errors.append((backend, count))

    def names(self) -> set[str]:
        """The backends that were reported."""
        return {name for name, _, _ in self.reports}

    def latest(self, backend: str = "a") -> QueueReading | None:
        """The last reading of a backend that was reported."""
        return [reading for name, reading, _ in self.reports if name == backend][-1]


def response(body: bytes, status: str = "200 OK") -> bytes:
    """A whole HTTP response."""
    return b"HTTP/1.1 %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (status.encode(), len(body), body)


def at_port(port: int, name: str = "a", engine: BackendType = BackendType.VLLM) -> Backend:
    """A backend on this machine."""
    return domain.backend(name, engine=engine, endpoint=Endpoint("http", "127.0.0.1", port))


def scraped(*backends: Backend, interval_s: float = INTERVAL_S) -> RouterConfig:
    """A configuration that scrapes often."""
    return RouterConfig(server=Server(queue_scrape_interval_s=interval_s), backends=backends)


@asynccontextmanager
async def running(work: "asyncio.Future[None]") -> AsyncIterator[None]:
    """Cancels the work at the end of the block, where an error that it ended with is raised."""
    try:
        yield
    finally:
        work.cancel()
        await asyncio.wait((work,))
        if not work.cancelled():
            work.result()
