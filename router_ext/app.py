"""The composition root: builds every part, runs them in one TaskGroup, and drains in order."""

import asyncio
import contextlib
import secrets
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from router_ext.admin.access import token_from
from router_ext.admin.api import admin_app
from router_ext.admin.server import AdminServer
from router_ext.admin.status import Status
from router_ext.clock import SystemClock
from router_ext.config.loader import LoadedConfig, load
from router_ext.config.url import is_loopback
from router_ext.config.watcher import ConfigWatcher
from router_ext.dispatch.egress import EgressClient
from router_ext.engine.engine import Engine
from router_ext.envoygen.write import write_clusters
from router_ext.extproc.server import ProcessorServer
from router_ext.ports import SessionStoreError, Telemetry
from router_ext.reload import Reloader, restart_only
from router_ext.scrape.envoy_admin import reconcile_with_envoy
from router_ext.scrape.health import HealthChecks
from router_ext.scrape.queues import QueueScraper
from router_ext.sessions.build import build_store
from router_ext.sessions.memory import MemoryStore
from router_ext.shared.build import build_bus
from router_ext.shared.bus import RedisBus
from router_ext.telemetry.log import get_logger
from router_ext.telemetry.metrics import BackendCollector, Metrics
from router_ext.telemetry.recorder import Recorder

RESTART_DELAY_S: Final = 1.0
"""How long a background task that failed rests."""

SESSION_COUNT_S: Final = 2.0
"""How often the sessions are counted."""

Work = Callable[[], Coroutine[Any, Any, None]]

DRAIN_GRACE_S: Final = 30.0
"""How long running requests may take after SIGTERM; Kubernetes' default grace period."""


class Router:
    """One router_ext process. ``serve`` runs it until SIGTERM or SIGINT."""

    def __init__(self, path: Path, environ: Mapping[str, str]) -> None:
        self._path = path
        self._environ = environ
        self._clock = SystemClock()
        self._started_at = self._clock.monotonic()
        self._loaded = load(path, environ)
        config = self._loaded.config
        self._log = get_logger()
        self._metrics = Metrics(_registry())
        self._recorder = Recorder(self._metrics, self._log, self._clock.wall, config.named_services)
        self._egress = EgressClient(config.server.egress_port)
        self._sessions = build_store(config.server.sessions, self._recorder.session_evicted)
        self._api_token = token_from(environ)
        prefix = secrets.token_hex(4)
        self._shared = build_bus(config.server, self._recorder, sender=secrets.token_hex(8))
        outside = self._recorder, self._clock, self._egress, self._sessions
        self._engine = Engine(config, *outside, id_prefix=prefix, shared=self._shared)
        self._metrics.registry.register(
            BackendCollector(self._engine.pool.slots, lambda: len(self._engine.caches), self._clock.monotonic)
        )
        self._ready = False
        self._stop = asyncio.Event()

    async def serve(self) -> None:
        """Starts everything, waits for a signal, drains and returns. Raises OSError when a port is taken."""
        config = self._loaded.config
        admin = AdminServer(self._admin_app(), config.server.admin_host, config.server.admin_port)
        processor = ProcessorServer(self._engine, self._recorder, config.server.processor_address)
        await processor.start()
        async with self._egress as egress, _background(self._recorder) as background:
            checks = HealthChecks(self._engine, egress, self._clock, self._recorder)
            background("probes", checks.run)
            queues = QueueScraper(lambda: self._engine.config, egress, self._clock, self._engine)
            background("queues", queues.run)
            background("reconcile", lambda: reconcile_with_envoy(self._engine, config.server.envoy_admin_port))
            background("sessions", self._count_sessions)
            background("reload", lambda: self._watch_config(checks, queues))
            if isinstance(self._shared, RedisBus):
                background("shared_state", partial(self._shared.run, self._engine.apply))
            admin_task = asyncio.create_task(admin.run(), name="admin")
            self._say_loaded(self._loaded)
            self._listen_for_signals()
            await self._become_ready(checks, processor)
            await self._stop.wait()
            await self._drain(processor)
            admin.stop()
            await admin_task
            await self._sessions.close()

    def _admin_app(self) -> Any:
        server = self._loaded.config.server
        local = is_loopback(server.admin_host)
        status = Status(
            snapshot=self._engine.pool.snapshot,
            decisions=lambda: self._engine.recent,
            ready=lambda: self._ready,
            uptime_s=lambda: self._clock.monotonic() - self._started_at,
        )
        return admin_app(
            status,
            self._metrics.registry,
            ("127.0.0.1", "localhost", "[::1]") if local else ("*",),
            sessions=lambda: self._sessions if self._engine.config.server.sessions.enabled else None,
            telemetry=self._recorder,
            token=self._api_token,
            exposed=not local,
        )

    async def _count_sessions(self) -> None:
        """Keeps the gauge, and frees what has expired. A store that is away leaves it as it is."""
        while True:
            if isinstance(self._sessions, MemoryStore):
                self._sessions.purge(self._clock.wall())
            if self._engine.config.server.sessions.enabled:
                with contextlib.suppress(SessionStoreError):
                    self._recorder.sessions_active(await self._sessions.count())
            await asyncio.sleep(SESSION_COUNT_S)

    async def _become_ready(self, checks: HealthChecks, processor: ProcessorServer) -> None:
        """Serves once every backend has been probed; a signal before that ends the wait."""
        first = asyncio.create_task(checks.first_round())
        stop = asyncio.create_task(self._stop.wait())
        await asyncio.wait((first, stop), return_when=asyncio.FIRST_COMPLETED)
        first.cancel()
        stop.cancel()
        if not self._stop.is_set():
            await processor.set_serving(True)
            self._ready = True
            self._log.info("ready", processor=str(self._engine.config.server.processor_address))

    async def _drain(self, processor: ProcessorServer) -> None:
        """Not ready at once; then running requests finish and are settled; then the sockets close."""
        self._ready = False
        await processor.set_serving(False)
        self._log.info("draining", open_requests=len(self._engine.exchanges))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._engine.idle(), DRAIN_GRACE_S)
        await processor.stop(grace_s=1.0)
        self._log.info("stopped", open_requests=len(self._engine.exchanges))

    def _listen_for_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)

    async def _watch_config(self, checks: HealthChecks, queues: QueueScraper) -> None:
        def take_over(loaded: LoadedConfig) -> None:
            self._take_over(loaded)
            checks.configure()
            queues.configure()

        reloader = Reloader(self._path, self._environ, self._recorder, take_over)
        await reloader.run(ConfigWatcher(self._path, digest=self._loaded.digest).changes())

    def _take_over(self, loaded: LoadedConfig) -> None:
        # First what can fail, so that a failure leaves the old configuration whole. Envoy learns of a cluster before
        # any request can be sent there: new backends start down until a probe, which goes through Envoy, has passed.
        # The running Envoy reads the folder, and the sockets are those, of the configuration it was all started with.
        write_clusters(loaded.config, self._loaded.config.server.envoy_dir)
        late = restart_only(self._loaded.config, loaded.config)
        if late:
            self._log.warning("restart_needed", settings=late)
        self._engine.configure(loaded.config)
        self._recorder.named_services = loaded.config.named_services
        self._say_loaded(loaded)

    def _say_loaded(self, loaded: LoadedConfig) -> None:
        self._recorder.reloaded(loaded.digest)
        for warning in loaded.warnings:
            self._log.warning("config", path=warning.path, line=warning.line, problem=warning.message)


def _registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


@asynccontextmanager
async def _background(telemetry: Telemetry) -> AsyncIterator[Callable[[str, Work], None]]:
    """Starts tasks that end with the block. One that fails is counted, logged, and begun again after a moment."""
    tasks: list[asyncio.Task[None]] = []
    async with asyncio.TaskGroup() as group:

        def start(name: str, work: Work) -> None:
            tasks.append(group.create_task(_supervised(name, work, telemetry), name=name))

        try:
            yield start
        finally:
            for task in tasks:
                task.cancel()


async def _supervised(name: str, work: Work, telemetry: Telemetry) -> None:
    while True:
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - a scrape that meets a bug must not end the routing of requests
            telemetry.fault(name, error)
        await asyncio.sleep(RESTART_DELAY_S)
