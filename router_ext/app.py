"""The composition root: builds every part, runs them in one TaskGroup, and drains in order."""

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from collections.abc import Iterable, Mapping
from datetime import date
from functools import partial
from pathlib import Path
from socket import socket
from typing import Final

from fastapi import FastAPI
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from router_ext.admin.access import Access, token_from
from router_ext.admin.server import AdminServer, tcp_socket, unix_socket
from router_ext.admin.targets import Targets, private_allowed
from router_ext.admin_side import AdminSide
from router_ext.background import background_tasks
from router_ext.clock import SystemClock
from router_ext.config.loader import LoadedConfig
from router_ext.config.problem import Problem
from router_ext.config.restart import restart_only
from router_ext.config.sections import Address, Server
from router_ext.config.url import is_loopback
from router_ext.config.watcher import ConfigWatcher
from router_ext.config.workers import id_prefix, worker_address
from router_ext.control import Control, Running
from router_ext.costs.days import day_at
from router_ext.dispatch.egress import EgressClient
from router_ext.dpo.export import build_export
from router_ext.dpo.shadow_log import build_shadow_log
from router_ext.engine.engine import Engine
from router_ext.engine.spend import TELL_S
from router_ext.engine.surroundings import Surroundings
from router_ext.engine.tally import Tally
from router_ext.envoygen.write import write_clusters
from router_ext.extproc.server import ProcessorServer
from router_ext.ledger.build import build_shared_ledger
from router_ext.ledger.paths import ledger_path
from router_ext.ledger.soon import FlushedSoon
from router_ext.ledger.sqlite import SqliteLedger
from router_ext.ports import NO_PAIRS, NO_SHADOW_LOG, SessionStore, SessionStoreError
from router_ext.schemas.court import SchemaCourt
from router_ext.scrape.envoy_admin import reconcile_with_envoy
from router_ext.scrape.health import HealthChecks
from router_ext.scrape.queues import QueueScraper
from router_ext.sessions.build import build_store
from router_ext.sessions.memory import MemoryStore
from router_ext.shared.build import build_bus
from router_ext.shared.bus import RedisBus
from router_ext.telemetry.judges import JudgeRecorder
from router_ext.telemetry.ledger import LedgerRecorder
from router_ext.telemetry.lines import pairs_recorder, shadow_log_recorder
from router_ext.telemetry.log import get_logger
from router_ext.telemetry.metrics import BackendCollector, BudgetCollector, Metrics, SpendCollector
from router_ext.telemetry.recorder import Recorder
from router_ext.workers.place import WorkerPlace

SESSION_COUNT_S: Final = 2.0
"""How often the sessions are counted."""

CHECKPOINT_S: Final = 5.0
"""How often the ledger's journal is carried over, off the event loop: 1,000 pages take 3 ms."""

DRAIN_GRACE_S: Final = 30.0
"""How long running requests may take after SIGTERM; Kubernetes' default grace period."""


class Router:
    """One router_ext process: the whole router, or one ``worker`` of it. ``serve`` runs it until SIGTERM or SIGINT.

    ``running`` is what ``path`` holds, with the changes of the admin API above it, read with the ``workers`` of the
    command line if they are given there; so is every later change of the file.
    """

    def __init__(
        self,
        path: Path,
        environ: Mapping[str, str],
        running: Running,
        *,
        workers: int | None = None,
        worker: WorkerPlace | None = None,
    ) -> None:
        self._path = path
        self._environ = environ
        self._worker = worker
        self._clock = SystemClock()
        self._at_start = config = running.loaded.config
        self._log = get_logger()
        self._metrics = Metrics(_registry())
        self._recorder = Recorder(self._metrics, self._log, self._clock.wall, config.named_services)
        self._egress = EgressClient(config.server.egress_port)
        self._sessions = build_store(config.server.sessions, self._recorder.session_evicted)
        self._access = _access(config.server, environ, worker)
        self._targets = Targets(private_allowed(environ))
        self._shared = build_bus(config.server, self._recorder, sender=secrets.token_hex(8))
        self._tally = None if worker is None else Tally.open(worker.folder.tally, worker.index)
        number = None if worker is None else worker.index
        recorded = self._metrics, self._log
        lost = JudgeRecorder(*recorded).judge_lost
        self._court = SchemaCourt(deadline_s=config.quality_gate.schema_timeout_s, told=lost)
        export = config.quality_gate.dpo_export
        self._export = build_export(export, pairs_recorder(*recorded), self._clock, number)
        self._shadow_log = build_shadow_log(config, shadow_log_recorder(*recorded), self._clock, number)
        id_prefix = _id_prefix(worker)
        today = day_at(self._clock.wall(), config.server.timezone).date
        ledger_file = ledger_path(config.server.data_dir, number)
        self._ledger_file = SqliteLedger(ledger_file, router=id_prefix, today=today)
        ledger_recorder = LedgerRecorder(self._metrics, self._log)
        self._shared_ledger = build_shared_ledger(config.server, self._ledger_file, ledger_recorder, router=id_prefix)
        changed = None if self._shared_ledger is None else self._shared_ledger.changed
        self._ledger = FlushedSoon(self._ledger_file, self._say_ledger, changed)
        outside = self._recorder, self._clock, self._egress, self._sessions
        self._engine = Engine(
            config,
            *outside,
            id_prefix=id_prefix,
            around=Surroundings(
                shared=self._shared,
                tally=self._tally,
                judge=self._court,
                pairs=self._export or NO_PAIRS,
                ledger=self._ledger,
                shadow_log=self._shadow_log or NO_SHADOW_LOG,
            ),
        )
        for spending in self._ledger_file.told(today):
            self._engine.apply(spending)
        self._metrics.registry.register(
            BackendCollector(self._engine.pool.slots, lambda: len(self._engine.caches), self._clock.monotonic)
        )
        self._metrics.registry.register(
            SpendCollector(lambda: self._engine.spend.totals(self._clock.wall()), lambda: self._recorder.named_services)
        )
        self._metrics.registry.register(BudgetCollector(self._engine.budgets.spent_ratios))
        self._checks = HealthChecks(self._engine, self._egress, self._clock, self._recorder)
        self._queues = QueueScraper(lambda: self._engine.config, self._egress, self._clock, self._engine)
        self._control = Control(
            path, environ, running, self._take_over, telemetry=self._recorder, clock=self._clock, workers=workers
        )
        self._ready = False
        self._stop = asyncio.Event()

    async def serve(self) -> None:
        """Starts everything, waits for a signal, drains and returns. Raises OSError when a port is taken, or when there
        are changes of the admin API and Envoy's cluster file cannot be written.
        """
        config, running = self._at_start, self._control.running
        if running.changes:
            await asyncio.to_thread(write_clusters, config, config.server.envoy_dir)
        admin = AdminServer(self._admin_app(), _admin_socket(config.server, self._worker))
        address, token = _processor_address(config.server, self._worker), token_from(self._environ)
        processor = ProcessorServer(self._engine, self._recorder, address, token=token)
        await processor.start()
        async with self._egress, background_tasks(self._recorder) as background:
            background("probes", self._checks.run)
            background("queues", self._queues.run)
            background("reconcile", lambda: reconcile_with_envoy(self._engine, config.server.envoy_admin_port))
            background("sessions", self._count_sessions)
            background("ledger", self._keep_checkpointing)
            background("reload", self._watch_config)
            background("changes", self._control.follow_changes)
            if isinstance(self._shared, RedisBus):
                background("shared_state", partial(self._shared.run, self._engine.apply))
                background("spending", self._keep_telling_spending)
            if self._shared_ledger is not None:
                background("shared_ledger", partial(self._shared_ledger.run, self._engine.apply, self._today))
            if self._export is not None:
                background("dpo_export", self._export.run)
            if self._shadow_log is not None:
                background("shadow_log", self._shadow_log.run)
            admin_task = asyncio.create_task(admin.run(), name="admin")
            self._recorder.reloaded(running.loaded.digest)
            self._say_doubts(running.loaded.warnings)
            self._say_counted_alone()
            self._listen_for_signals()
            await self._become_ready(processor)
            await self._stop.wait()
            await self._drain(processor)
            admin.stop()
            await admin_task
            await self._engine.shadow.close()
            for log in (self._export, self._shadow_log):
                if log is not None:
                    await log.close()
            await self._court.close()
            if self._shared_ledger is not None:
                await self._shared_ledger.finish()
            self._close_ledger()
            await self._sessions.close()

    def _admin_app(self) -> FastAPI:
        return AdminSide(
            self._access,
            self._engine,
            self._control,
            self._clock,
            self._recorder,
            self._metrics,
            self._targets,
            ledger=self._ledger,
            shared_ledger=self._shared_ledger,
            sessions=self._kept_sessions,
            is_ready=lambda: self._ready,
            is_worker=self._worker is not None,
        ).app()

    def _kept_sessions(self) -> SessionStore | None:
        return self._sessions if self._engine.config.server.sessions.enabled else None

    async def _count_sessions(self) -> None:
        """Keeps the gauge, and frees what has expired. A store that is away leaves it as it is."""
        while True:
            if isinstance(self._sessions, MemoryStore):
                self._sessions.purge(self._clock.wall())
            if self._engine.config.server.sessions.enabled:
                with contextlib.suppress(SessionStoreError):
                    self._recorder.sessions_active(await self._sessions.count())
            await asyncio.sleep(SESSION_COUNT_S)

    def _today(self) -> date:
        return self._engine.spend.day(self._clock.wall())

    def _say_ledger(self, error: str) -> None:
        """What could not be written is kept and tried again."""
        if error:
            self._log.warning("ledger_failing", cause=error)
        else:
            self._log.info("ledger_recovered")

    async def _keep_checkpointing(self) -> None:
        while True:
            await asyncio.sleep(CHECKPOINT_S)
            await asyncio.to_thread(self._ledger_file.checkpoint)

    def _close_ledger(self) -> None:
        self._ledger.stop()
        error = self._ledger_file.close()
        if error:
            self._log.error("ledger_lost", cause=error)

    async def _keep_telling_spending(self) -> None:
        while True:
            self._tell_spending()
            await asyncio.sleep(TELL_S)

    def _tell_spending(self) -> None:
        """Tells the other routers what was spent."""
        for event in self._engine.spend.due_events(self._clock.monotonic(), self._clock.wall()):
            self._shared.publish(event)

    async def _become_ready(self, processor: ProcessorServer) -> None:
        """Serves once every backend has been probed; a signal before that ends the wait."""
        first = asyncio.create_task(self._checks.first_round())
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
        self._tell_spending()
        await processor.stop(grace_s=1.0)
        self._log.info("stopped", open_requests=len(self._engine.exchanges))

    def _listen_for_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        if self._worker is not None:
            loop.add_reader(sys.stdin, self._stop_at_end_of_input)

    def _stop_at_end_of_input(self) -> None:
        """A worker's supervisor holds its standard input open, and says nothing there."""
        if not os.read(sys.stdin.fileno(), 4096):
            asyncio.get_running_loop().remove_reader(sys.stdin)
            self._stop.set()

    async def _watch_config(self) -> None:
        # Begun anew after a fault, it starts from what runs then.
        await self._control.follow(ConfigWatcher(self._path, digest=self._control.running.loaded.digest).changes())

    async def _take_over(self, loaded: LoadedConfig) -> None:
        # First what can fail, so that a failure leaves the old configuration whole. Envoy learns of a cluster before
        # any request can be sent there: new backends start down until a probe, which goes through Envoy, has passed.
        # The running Envoy reads the folder, and the sockets are those, of the configuration it was all started with.
        await asyncio.to_thread(write_clusters, loaded.config, self._at_start.server.envoy_dir)
        was = self._control.running.loaded
        late = restart_only(self._at_start, loaded.config)
        if late and late != restart_only(self._at_start, was.config):
            self._log.warning("restart_needed", settings=late)
        alone = self._engine.pool.counted_alone
        self._engine.configure(loaded.config)
        self._checks.configure()
        self._queues.configure()
        self._recorder.named_services = loaded.config.named_services
        self._say_doubts(loaded.warnings_beside(was))
        if self._engine.pool.counted_alone != alone:
            self._say_counted_alone()

    def _say_doubts(self, warnings: Iterable[Problem]) -> None:
        for warning in warnings:
            self._log.warning("config", path=warning.path, line=warning.line, problem=warning.message)

    def _say_counted_alone(self) -> None:
        if self._engine.pool.counted_alone:
            self._log.warning("counted_alone", backends=self._engine.pool.counted_alone)


def _access(server: Server, environ: Mapping[str, str], worker: WorkerPlace | None) -> Access:
    """A worker's own admin API is for its supervisor, which nobody passes without the token."""
    if worker is not None:
        return Access(None, exposed=False, supervised=True)
    return Access(token_from(environ), exposed=not is_loopback(server.admin_host))


def _admin_socket(server: Server, worker: WorkerPlace | None) -> socket:
    if worker is not None:
        return unix_socket(worker.admin_socket)
    return tcp_socket(server.admin_host, server.admin_port)


def _processor_address(server: Server, worker: WorkerPlace | None) -> Address:
    return server.processor_address if worker is None else worker_address(server, worker.index)


def _id_prefix(worker: WorkerPlace | None) -> str:
    """Differs between processes, and tells Envoy which worker decided."""
    return ("" if worker is None else id_prefix(worker.index)) + secrets.token_hex(4)


def _registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry
