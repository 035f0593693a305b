"""The simulated engine's HTTP server: routes, key check, health, metrics and the sim's own switches."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import msgspec
import orjson
from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from router_ext.demo.sim.catalogue import models_body
from router_ext.demo.sim.engine import Engine
from router_ext.demo.sim.errors import UNAUTHORIZED_BODY, no_such_path
from router_ext.demo.sim.faults import FaultBoard, read_faults
from router_ext.demo.sim.inference import PARSERS, Inference, json_response, refusal
from router_ext.demo.sim.metrics_page import CONTENT_TYPE, MetricsPage
from router_ext.demo.sim.runner import EngineRunner
from router_ext.demo.sim.settings import SimSettings

VERSION = "0.32.0"
SHUTDOWN_S = 0.2
Handler = Callable[[web.BaseRequest, bytes], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came in. Header names are in lower case; of a repeated header the last value stays."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class SimServer:
    """One simulated engine on a socket: ``async with SimServer(settings) as sim: sim.url``. Port 0 draws a free one."""

    def __init__(self, settings: SimSettings | None = None, host: str = "127.0.0.1", port: int = 0) -> None:
        self.settings = settings or SimSettings()
        self.host = host
        self.port = port
        self.requests: list[Received] = []
        self.faults = FaultBoard()
        self.engine = Engine(self.settings)
        self._started_at = time.time()
        self._in_flight = 0
        self._received = 0
        self._page = MetricsPage(
            self.settings.model, self.engine, self.settings.block_size, self.settings.cache_blocks, self._started_at
        )
        self._routes: dict[str, dict[str, Handler]] = {
            "/v1/models": {"GET": self._models},
            "/health": {"GET": self._health},
            "/ping": {"GET": self._ping, "POST": self._ping},
            "/version": {"GET": self._version},
            "/metrics": {"GET": self._metrics},
            "/sim/faults": {"GET": self._show_faults, "POST": self._set_faults},
            "/sim/stats": {"GET": self._show_stats},
            **{path: {"POST": self._infer} for path in PARSERS},
        }

    @property
    def url(self) -> str:
        """The base address, without a slash at the end."""
        return f"http://{self.host}:{self.port}"

    @property
    def in_flight(self) -> int:
        """Inference requests that are being answered."""
        return self._in_flight

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._runner = EngineRunner(self.engine, loop)
        self._inference = Inference(self.settings, self._runner, self._page)
        server = web.Server(
            self._handle,
            request_factory=self._make_request,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=self.settings.keepalive_s,
        )
        self._web = web.ServerRunner(server, shutdown_timeout=SHUTDOWN_S)
        await self._web.setup()
        site = web.TCPSite(self._web, self.host, self.port, backlog=1024)
        await site.start()
        self.port = self._web.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._web.cleanup()
        self._runner.close()

    def stats(self) -> dict[str, int]:
        """What ``GET /sim/stats`` shows."""
        counters = self.engine.counters
        return {
            "requests": self._received,
            "in_flight": self._in_flight,
            "running": self.engine.running,
            "waiting": self.engine.waiting,
            "served": counters.finished["stop"] + counters.finished["length"],
            "cancelled": counters.finished["abort"],
            "rejected": counters.rejected,
            "faults_applied": self.faults.applied,
            "prompt_tokens": counters.prompt_tokens,
            "cached_tokens": counters.cached_tokens,
            "generation_tokens": counters.generation_tokens,
            "cache_blocks": len(self.engine.cache),
        }

    def _make_request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: RequestHandler,
        writer: AbstractStreamWriter,
        task: "asyncio.Task[None]",
    ) -> web.BaseRequest:
        loop = asyncio.get_running_loop()
        limit = self.settings.max_body_bytes
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=limit)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if "Expect" in request.headers:
            await _send_continue(request)
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return refusal(request.path, no_such_path(413, "Request Entity Too Large"))
        handlers = self._routes.get(request.path)
        if handlers is None:
            return refusal(request.path, no_such_path(404, "Not Found"))
        handler = handlers.get(request.method)
        if handler is None:
            return refusal(request.path, no_such_path(405, "Method Not Allowed"))
        if not request.path.startswith("/sim/"):
            self._record(request, body)
        return await handler(request, body)

    def _record(self, request: web.BaseRequest, body: bytes) -> None:
        self._received += 1
        if self.settings.record:
            headers = {name.lower(): value for name, value in request.headers.items()}
            self.requests.append(Received(request.method, request.path, headers, body))

    def _authorized(self, request: web.BaseRequest) -> bool:
        key = self.settings.api_key
        return not key or request.headers.get("Authorization") == f"Bearer {key}"

    async def _infer(self, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        if not self._authorized(request):
            return json_response(401, UNAUTHORIZED_BODY)
        fault = self.faults.take(request.path)
        if fault.refuse:
            return _drop(request)
        self._in_flight += 1
        try:
            return await self._inference.answer(request, body, fault)
        finally:
            self._in_flight -= 1

    async def _models(self, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        if self.faults.current.refuse:
            return _drop(request)
        if not self._authorized(request):
            return json_response(401, UNAUTHORIZED_BODY)
        return json_response(200, models_body(self.settings, int(self._started_at)))

    async def _health(self, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        faults = self.faults.current
        if faults.refuse:
            return _drop(request)
        await asyncio.sleep(faults.health_delay_s)
        return web.Response(status=faults.health_status or 200)

    async def _metrics(self, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        if self.faults.current.refuse:
            return _drop(request)
        return web.Response(body=self._page.render(), headers={"Content-Type": CONTENT_TYPE})

    async def _ping(self, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        return await self._health(request, body)

    async def _version(self, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        return json_response(200, orjson.dumps({"version": VERSION}))

    async def _show_faults(self, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        return json_response(200, msgspec.json.encode(self.faults.current))

    async def _set_faults(self, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        try:
            self.faults.set(read_faults(body))
        except msgspec.DecodeError as error:
            return json_response(400, orjson.dumps({"error": str(error)}))
        return await self._show_faults(request, body)

    async def _show_stats(self, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        return json_response(200, orjson.dumps(self.stats()))


async def _send_continue(request: web.BaseRequest) -> None:
    """Ask for the body: some clients hold a large one back for a second (RFC 9110, 10.1.1)."""
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    request.writer.output_size = 0


def _drop(request: web.BaseRequest) -> web.Response:
    """Close the connection without a byte; the response is never written."""
    if request.transport:
        request.transport.abort()
    return web.Response()


async def serve(settings: SimSettings, host: str, port: int, ready: Callable[[int], Any] | None = None) -> None:
    """Serve until cancelled. ``ready`` is called with the port once connections are accepted."""
    async with SimServer(settings, host, port) as sim:
        if ready:
            ready(sim.port)
        await asyncio.Event().wait()
