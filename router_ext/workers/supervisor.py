"""``serve --workers N``: starts the workers, replaces those that die, and answers for all of them on the admin port."""

import asyncio
import contextlib
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from fastapi import FastAPI
from prometheus_client import CollectorRegistry, Counter, PlatformCollector
from prometheus_client.multiprocess import mark_process_dead
from starlette.middleware import Middleware

from router_ext.admin.ab_tests import ab_test_routes
from router_ext.admin.access import Access, token_from
from router_ext.admin.api import admin_app
from router_ext.admin.budgets import budget_routes
from router_ext.admin.costs import cost_routes
from router_ext.admin.operations import elsewhere
from router_ext.admin.routes import changing_routes
from router_ext.admin.server import AdminServer, tcp_socket
from router_ext.clock import SystemClock
from router_ext.config.sections import Server
from router_ext.config.url import is_loopback
from router_ext.engine.tally import Tally
from router_ext.telemetry.log import get_logger
from router_ext.workers.costs import WorkersCosts
from router_ext.workers.forwarder import Forwarder, Workers
from router_ext.workers.place import make_folder
from router_ext.workers.processes import ProcessFigures, WorkerProcess
from router_ext.workers.status import WorkersStatus

FIRST_DELAY_S: Final = 0.1
MAX_DELAY_S: Final = 10.0
"""Rests before a worker that died is replaced: doubled with each that did not run for ``STEADY_S``."""

STEADY_S: Final = 30.0

STOP_PATIENCE_S: Final = 33.0
"""How long workers may take after a signal: 30 s for running requests, and a little to close."""

_GIVEN_UP: Final = (1, 2)
"""Exit codes of a worker that cannot do its work: an address is taken, the configuration cannot be used."""

METRICS_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The variable by which prometheus-client keeps its figures in files of this folder."""


class Supervisor:
    """The parent of ``server.workers`` workers of the configuration file at ``path``. It routes nothing itself.

    ``options`` are those of the command line that the workers get too. Raises OSError when its folder cannot be made.
    """

    def __init__(self, path: Path, environ: Mapping[str, str], server: Server, *, options: Sequence[str]) -> None:
        self._path = path
        self._environ = environ
        self._server = server
        self._options = options
        self._log = get_logger()
        self._folder = make_folder(server)
        self._tally = Tally.create(self._folder.tally, server.workers)
        self._processes: dict[int, Process] = {}
        self._restarts = dict.fromkeys(range(server.workers), 0)
        self._stop = asyncio.Event()
        self._exit_code = 0
        self._registry = CollectorRegistry()
        self._restarted = Counter(
            "kronaxis_router_worker_restarts", "Workers that died and were replaced.", registry=self._registry
        )
        PlatformCollector(registry=self._registry)
        self._registry.register(ProcessFigures(self.workers))

    def workers(self) -> Sequence[WorkerProcess]:
        """Every worker, also while it does not run."""
        return [
            WorkerProcess(index, process.pid if (process := self._processes.get(index)) else None, restarts)
            for index, restarts in self._restarts.items()
        ]

    async def serve(self) -> int:
        """Runs until SIGTERM or SIGINT and returns 0; the exit code of a worker when none could be started.

        Raises OSError when the admin port is taken.
        """
        admin = AdminServer(self._admin_app(), tcp_socket(self._server.admin_host, self._server.admin_port))
        admin_task = asyncio.create_task(admin.run(), name="admin")
        self._listen_for_signals()
        async with asyncio.TaskGroup() as group:
            for index in self._restarts:
                group.create_task(self._keep(index), name=f"worker-{index}")
        admin.stop()
        await admin_task
        self._tally.close()
        return self._exit_code

    def _admin_app(self) -> FastAPI:
        started_at = time.monotonic()
        status = WorkersStatus(
            self._folder, self.workers, self._stop.is_set, lambda: time.monotonic() - started_at, self._registry
        )
        access = Access(token_from(self._environ), exposed=not is_loopback(self._server.admin_host))
        costs = WorkersCosts(self._folder, self.workers, SystemClock(), self._server.timezone)
        by_workers = changing_routes(elsewhere, elsewhere)
        routes = [cost_routes(costs), budget_routes(status.budgets), ab_test_routes(status.ab_tests), *by_workers]
        workers = Workers(self._folder, lambda: [worker.index for worker in self.workers()])
        forwarded = [route for router in by_workers for route in router.routes]
        inner = Middleware(Forwarder, workers=workers, routes=forwarded)
        limit = self._server.max_body_bytes
        return admin_app(status, access, *routes, inner=inner, max_conversation_bytes=lambda: limit)

    def _listen_for_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)

    async def _keep(self, index: int) -> None:
        """Keeps one worker running until the router is to stop."""
        delay_s = FIRST_DELAY_S
        while not self._stop.is_set():
            began = time.monotonic()
            code = await self._run(index)
            if self._stop.is_set():
                return
            ran_s = time.monotonic() - began
            self._log.error("worker_died", worker=index, exit_code=code, ran_s=round(ran_s, 1))
            if self._is_hopeless(code, index):
                self._exit_code = code
                self._stop.set()
                return
            self._restarts[index] += 1
            self._restarted.inc()
            delay_s = FIRST_DELAY_S if ran_s >= STEADY_S else min(MAX_DELAY_S, 2 * delay_s)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), delay_s)

    def _is_hopeless(self, code: int, index: int) -> bool:
        """A first process that ends by itself, as for an address that is taken: others would do the same."""
        return code in _GIVEN_UP and self._restarts[index] == 0

    async def _run(self, index: int) -> int:
        """One process from start to end. Returns its exit code, negative for a signal."""
        place = ("--index", str(index), "--count", str(self._server.workers), "--folder", str(self._folder.path))
        argv = (sys.executable, "-m", "router_ext.cli.main", "worker", str(self._path), *place, *self._options)
        environ = {**self._environ, METRICS_FOLDER: str(self._folder.metrics)}
        # A worker ends when its standard input does: none outlives its supervisor.
        process = await asyncio.create_subprocess_exec(*argv, stdin=PIPE, env=environ)
        self._processes[index] = process
        try:
            return await self._end_of(process)
        finally:
            del self._processes[index]
            self._tally.clear(index)
            mark_process_dead(index, str(self._folder.metrics))  # type: ignore[no-untyped-call]

    async def _end_of(self, process: Process) -> int:
        """Waits for the end of a process, which a signal to the supervisor brings about."""
        ended, stop = asyncio.create_task(process.wait()), asyncio.create_task(self._stop.wait())
        await asyncio.wait((ended, stop), return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not ended.done():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            await asyncio.wait((ended,), timeout=STOP_PATIENCE_S)
        if not ended.done():
            process.kill()
        return await ended
