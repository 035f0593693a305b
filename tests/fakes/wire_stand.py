"""A processor server under test with everything around it: engine, telemetry, clock and a channel for a fake Envoy."""

import asyncio
import contextlib
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

import grpc

from router_ext.config.sections import Address, Defaults, RouterConfig, Server, TcpAddress, UnixAddress
from router_ext.engine.engine import Engine
from router_ext.extproc.server import ProcessorServer
from router_ext.model.backend import Backend, BackendType, Endpoint
from router_ext.model.secret import Secret
from router_ext.model.snapshot import Health
from router_ext.ports import Clock, Dispatcher, SessionStore, Telemetry
from tests.fakes.clock import FakeClock
from tests.fakes.dispatcher import CannedDispatcher
from tests.fakes.envoy_client import FakeEnvoy
from tests.fakes.session_store import FakeSessionStore
from tests.fakes.telemetry import RecordingTelemetry
from tests.fakes.wire_access_log import send_access_log
from tests.fakes.wire_messages import ProcessingModes

T = TypeVar("T")

DEADLINE_S: Final = 10.0

ALPHA: Final = Backend(
    name="alpha",
    endpoint=Endpoint("http", "10.0.0.1", 8000),
    type=BackendType.VLLM,
    model_name="served-model",
    aliases=frozenset({"m"}),
)
GAMMA: Final = Backend(
    name="gamma",
    endpoint=Endpoint("https", "gemini.test", 443),
    type=BackendType.GEMINI,
    model_name="gemini-pro",
    api_key=Secret("gamma-key"),
)
CONFIG: Final = RouterConfig(backends=(ALPHA, GAMMA), defaults=Defaults(("alpha", "gamma")))
"""``alpha`` takes ``m`` and is sent ``served-model``; ``gamma`` has a path and a key of its own."""

ALONE: Final = RouterConfig(backends=(ALPHA,), defaults=Defaults(("alpha",)))
"""``alpha`` without anybody to take its place."""

CHANNEL_OPTIONS: Final = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),
)


def small_config(max_body_bytes: int) -> RouterConfig:
    """``CONFIG`` with a limit of its own on bodies."""
    return replace(CONFIG, server=Server(max_body_bytes=max_body_bytes))


def healthy_engine(
    engine_class: type[Engine],
    telemetry: Telemetry,
    clock: Clock,
    dispatcher: Dispatcher,
    sessions: SessionStore | None = None,
) -> Engine:
    """An engine on ``CONFIG`` whose backends are all healthy."""
    store = sessions or FakeSessionStore()
    engine = engine_class(CONFIG, telemetry, clock, dispatcher, store, id_prefix="test")
    for backend in CONFIG.backends:
        engine.set_health(backend.name, Health.HEALTHY)
    return engine


class Stand:
    """The server and its surroundings on an event loop of their own; ``run`` brings a coroutine to its end there."""

    def __init__(self, runner: asyncio.Runner, address: Address, engine_class: type[Engine]) -> None:
        self._runner = runner
        self._address = address
        self.kept = RecordingTelemetry()
        self.clock = FakeClock()
        self.dispatcher = CannedDispatcher()
        self.sessions = FakeSessionStore()
        self.engine = healthy_engine(engine_class, self.kept, self.clock, self.dispatcher, self.sessions)
        self.server = ProcessorServer(self.engine, self.kept, address)
        self.channel: grpc.aio.Channel
        self._idle_tasks = 0

    async def start(self) -> None:
        """Starts the server and opens the channel."""
        await self.server.start()
        self.channel = grpc.aio.insecure_channel(str(self._address), options=CHANNEL_OPTIONS)
        await send_access_log(self.channel, [])
        self._idle_tasks = len(asyncio.all_tasks())

    async def quiet(self) -> None:
        """Returns when no more tasks run than in a server without streams; TimeoutError after ten seconds."""
        # A connection keeps the order of its streams: after this one, all before it have reached their handlers.
        await send_access_log(self.channel, [])
        await eventually(lambda: len(asyncio.all_tasks()) <= self._idle_tasks)

    async def stop(self) -> None:
        """Closes the channel and the server."""
        await self.channel.close()
        await self.server.stop(grace_s=0)

    def run(self, task: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result."""
        return self._runner.run(task)

    def envoy(self, modes: ProcessingModes | None = None) -> FakeEnvoy:
        """A fake Envoy in these modes, by default those of the generated configuration."""
        return FakeEnvoy(self.channel, modes or ProcessingModes())

    @property
    def in_flight(self) -> int:
        """Requests in flight over all backends."""
        return sum(state.in_flight for state in self.engine.pool.snapshot().values())

    def forget(self) -> None:
        """Ends what is open and forgets what was told, so that the next exchange starts from nothing."""
        self.lose_open_exchanges()
        self.kept.forget()
        self.dispatcher.forget()
        self.sessions.sessions.clear()
        self.sessions.away = self.sessions.read_only = False

    def lose_open_exchanges(self, looks: int = 12) -> None:
        """Reconciles with an Envoy that has nothing open, once a second."""
        for _ in range(looks):
            self.clock.advance(1.0)
            self.engine.reconcile({backend.cluster: 0 for backend in CONFIG.backends})

    @contextlib.contextmanager
    def configured(self, config: RouterConfig) -> Iterator[None]:
        """Another configuration for a while, all of whose backends are healthy."""
        self._configure(config)
        try:
            yield
        finally:
            self._configure(CONFIG)

    def _configure(self, config: RouterConfig) -> None:
        self.engine.configure(config)
        for backend in config.backends:
            self.engine.set_health(backend.name, Health.HEALTHY)

    @contextlib.contextmanager
    def all_down(self) -> Iterator[None]:
        """No backend for a while."""
        for backend in CONFIG.backends:
            self.engine.set_health(backend.name, Health.DOWN)
        try:
            yield
        finally:
            for backend in CONFIG.backends:
                self.engine.set_health(backend.name, Health.HEALTHY)


@contextlib.contextmanager
def unix_stand(engine_class: type[Engine] = Engine) -> Iterator[Stand]:
    """A stand on a Unix socket."""
    with tempfile.TemporaryDirectory(prefix="rx-") as folder:
        yield from _standing(UnixAddress(Path(folder) / "p.sock"), engine_class)


@contextlib.contextmanager
def tcp_stand() -> Iterator[Stand]:
    """A stand on a TCP port."""
    yield from _standing(TcpAddress("127.0.0.1", free_port()), Engine)


def _standing(address: Address, engine_class: type[Engine]) -> Iterator[Stand]:
    with asyncio.Runner() as runner:
        stand = runner.run(_make(runner, address, engine_class))
        yield stand
        runner.run(stand.stop())


async def _make(runner: asyncio.Runner, address: Address, engine_class: type[Engine]) -> Stand:
    stand = Stand(runner, address, engine_class)
    await stand.start()
    return stand


@contextlib.asynccontextmanager
async def served(engine: Engine, telemetry: Telemetry) -> AsyncIterator[tuple[ProcessorServer, grpc.aio.Channel]]:
    """A server for an engine that the test brings, on a Unix socket, with a channel to it."""
    with tempfile.TemporaryDirectory(prefix="rx-") as folder:
        address = UnixAddress(Path(folder) / "p.sock")
        server = ProcessorServer(engine, telemetry, address)
        await server.start()
        try:
            async with grpc.aio.insecure_channel(str(address), options=CHANNEL_OPTIONS) as channel:
                yield server, channel
        finally:
            await server.stop(grace_s=0)


def free_port() -> int:
    """A TCP port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def eventually(condition: Callable[[], bool]) -> None:
    """Waits until the condition holds; TimeoutError after ten seconds."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - the condition is any expression, nobody sets an event for it
            await asyncio.sleep(0.001)
