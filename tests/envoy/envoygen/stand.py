"""A test stand: fake backends, a fake processor and a real Envoy on the generated files, all on the loopback."""

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from aiohttp import ClientSession, web
from multidict import CIMultiDictProxy
from yarl import URL

from router_ext.config.sections import Defaults, RouterConfig, Server, UnixAddress
from router_ext.envoygen import write_envoy_files
from router_ext.model.backend import Backend, BackendType, Endpoint
from tests.envoy.envoygen.fake_processor import FakeProcessor, serving
from tests.envoy.rig import POLL_S, EnvoyProcess, free_port, short_directory

JSON_ANSWER = json.dumps({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}})


@dataclass(slots=True)
class FakeBackend:
    """Answers every request, by default with a small JSON answer, and keeps the paths and headers that it saw."""

    name: str
    port: int = field(default_factory=free_port)
    host: str = "127.0.0.1"
    answer: Callable[[web.Request], web.StreamResponse] | None = None
    stream: Callable[[web.Request], AsyncIterator[bytes]] | None = None
    delay_s: float = 0.0
    tls: ssl.SSLContext | None = None
    seen: list[dict[str, str]] = field(default_factory=list)
    health_checks: int = 0

    def as_backend(self) -> Backend:
        """The backend that a configuration would hold for it."""
        scheme = "http" if self.tls is None else "https"
        return Backend(self.name, Endpoint(scheme, self.host, self.port), BackendType.VLLM, "m")

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One exchange."""
        if request.path == "/health":
            self.health_checks += 1
            return web.Response()
        await request.read()
        self.seen.append({":path": request.path_qs} | {name.lower(): value for name, value in request.headers.items()})
        if self.stream is not None:
            return await self._stream(request, self.stream(request))
        await asyncio.sleep(self.delay_s)
        return self.answer(request) if self.answer else web.Response(text=JSON_ANSWER, content_type="application/json")

    async def _stream(self, request: web.Request, pieces: AsyncIterator[bytes]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        async for piece in pieces:
            await response.write(piece)
        return response

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Listens on the backend's port."""
        app = web.Application(client_max_size=128 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port, ssl_context=self.tls).start()
        try:
            yield
        finally:
            await runner.cleanup()


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes

    @property
    def error(self) -> dict[str, str | None]:
        """The ``error`` object of an OpenAI-style body."""
        fields: dict[str, str | None] = json.loads(self.body)["error"]
        return fields


@dataclass(slots=True)
class Stand:
    """Everything that runs; ``url`` is the ingress, ``egress`` the loopback egress."""

    config: RouterConfig
    envoy: EnvoyProcess
    processor: FakeProcessor
    client: ClientSession

    async def post(self, path: str, *, at: str = "", **headers: str) -> Answer:
        """Posts ``{}`` to ``path`` on the ingress, or on the listener whose base URL is ``at``."""
        async with self.client.post((at or self.url) + path, data=b"{}", headers=headers) as answer:
            return Answer(answer.status, answer.headers, await answer.read())

    async def get_raw(self, path: str) -> int:
        """The status of a GET of ``path``, which is sent exactly as it is written."""
        async with self.client.get(URL(self.url + path, encoded=True)) as answer:
            return answer.status

    @property
    def url(self) -> str:
        """Base URL of the ingress listener."""
        return f"http://127.0.0.1:{self.config.server.port}"

    @property
    def egress(self) -> str:
        """Base URL of the egress listener."""
        return f"http://127.0.0.1:{self.config.server.egress_port}"


def server_for(directory: Path) -> Server:
    """Server settings on free ports, with Envoy's files and the processor's socket in ``directory``."""
    return Server(
        port=free_port(),
        egress_port=free_port(),
        admin_port=free_port(),
        envoy_admin_port=free_port(),
        processor_address=UnixAddress(directory / "p.sock"),
        envoy_dir=directory,
    )


def config_for(server: Server, *backends: Backend, chain: tuple[str, ...] | None = None) -> RouterConfig:
    """A configuration of ``backends``; ``chain`` is the fallback chain, all of them by default."""
    names = tuple(backend.name for backend in backends) if chain is None else chain
    return RouterConfig(server=server, backends=backends, defaults=Defaults(names))


@asynccontextmanager
async def stand(
    logs: Path,
    *backends: FakeBackend,
    processor: FakeProcessor | None = None,
    chain: tuple[str, ...] | None = None,
    unstarted: tuple[FakeBackend, ...] = (),
    **server: object,
) -> AsyncIterator[Stand]:
    """Starts everything but the ``unstarted`` backends; without ``processor`` nobody listens on its socket.

    ``chain`` is the fallback chain, all backends by default; ``server`` overrides server settings.
    """
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(short_directory())
        settings = replace(server_for(directory), **server)  # type: ignore[arg-type]
        config = config_for(settings, *(backend.as_backend() for backend in (*backends, *unstarted)), chain=chain)
        write_envoy_files(config, directory)
        for backend in backends:
            await stack.enter_async_context(backend.serving())
        answering = serving(processor, str(settings.processor_address)) if processor else nullcontext()
        await stack.enter_async_context(answering)
        envoy = EnvoyProcess(directory / "bootstrap.yaml", settings.envoy_admin_port, logs)
        await asyncio.to_thread(envoy.start)
        stack.callback(envoy.stop)
        client = await stack.enter_async_context(ClientSession())
        yield Stand(config, envoy, processor or FakeProcessor(), client)


async def eventually(condition: Callable[[], bool], what: str, deadline_s: float = 10.0) -> None:
    """Polls ``condition`` without blocking the loop; an AssertionError naming ``what`` after ``deadline_s`` seconds."""
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"not within {deadline_s} s: {what}"
        await asyncio.sleep(POLL_S)
