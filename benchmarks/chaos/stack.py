"""The processes of a run: three simulated backends, router_ext and Envoy."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import aiohttp
import msgspec

from benchmarks.chaos.report import RouterPage
from benchmarks.chaos.schedule import BACKENDS, Action, Kill, Restart, Switch
from benchmarks.chaos.traffic import MODEL, Planned
from benchmarks.rig import SERVER
from router_ext.demo.child import Child, free_port
from router_ext.demo.sim.faults import Faults
from router_ext.envoygen.binary import find_envoy
from router_ext.model.headers import BACKEND

START_PATIENCE_S: Final = 30.0
_LOOK_S: Final = 0.05
_ROUTER_EXT: Final = (sys.executable, "-m", "router_ext.cli.main")

_SIM: Final = (sys.executable, "-m", "router_ext.demo.sim")
"""``router-ext sim-backend`` without the imports of the other commands: a restart takes half a second."""

CONFIG: Final = (
    SERVER
    + """\
  queue_aware_routing: true
backends: [{backends}]
defaults: {{fallback_chain: [{names}], max_attempts: 3, first_token_timeout: 2s}}
"""
)

BACKEND_ENTRY: Final = (
    '{{name: {name}, url: "http://127.0.0.1:{port}", type: vllm, model_name: {model}, '
    "circuit_breaker: {{error_threshold: 5, window_seconds: 10s}}}}"
)

_SPEED: Final = ("--prefill-tps", "5000", "--decode-tps", "20000")
"""A backend serves up to 65 requests a second, so that two of them bear the usual load. An answer is written within
0.1 ms after its first token: a stream whose backend dies in the middle of that is lost.
"""


class Stack:
    """The running parts; their logs are in ``folder``."""

    def __init__(self, folder: Path, session: aiohttp.ClientSession) -> None:
        self._folder = folder
        self._session = session
        self._ports = {name: free_port() for name in ("port", "egress", "admin", "envoy_admin", *BACKENDS)}
        self._children: dict[str, Child] = {}

    @property
    def url(self) -> str:
        """Base URL for clients."""
        return self._base("port")

    async def start(self) -> None:
        """Starts everything, and returns when requests are routed. Raises RuntimeError with the end of a log."""
        config = self._folder / "router.yaml"
        config.write_text(self._config_text())
        await self._until_exit("envoy-config", [*_ROUTER_EXT, "envoy-config", str(config)])
        for name in BACKENDS:
            self._start_backend(name)
        for name in BACKENDS:
            await self._until(f"backend {name}", partial(self._answers, self._base(name) + "/health"))
        bootstrap = str(self._folder / "envoy" / "bootstrap.yaml")
        self._start("envoy", [str(find_envoy()), "-c", bootstrap, "--use-dynamic-base-id", "--log-level", "warn"])
        self._start("router_ext", [*_ROUTER_EXT, "serve", str(config)])
        await self._until("router_ext", partial(self._answers, self._base("admin") + "/ready"))
        await self._until("a routed request", self._routes)

    def stop(self) -> None:
        """Stops what runs, Envoy first so that no request meets a missing part."""
        for name in ("envoy", "router_ext", *BACKENDS):
            if name in self._children:
                self._children[name].stop(patience_s=3.0)

    async def do(self, action: Action) -> None:
        """Makes something go wrong, or right again."""
        match action:
            case Kill(backend):
                await asyncio.to_thread(self._children[backend].kill)
            case Restart(backend):
                await asyncio.to_thread(self._start_backend, backend)
            case Switch(backend, faults):
                await self._switch(backend, faults)

    async def page(self) -> RouterPage:
        """The router's metrics now."""
        async with self._session.get(self._base("admin") + "/metrics") as answer:
            return RouterPage.read(await answer.text())

    async def settled_page(self, patience_s: float) -> RouterPage:
        """The router's metrics once it counts no request as open, or after ``patience_s`` seconds."""
        deadline = time.monotonic() + patience_s
        page = await self.page()
        while page.in_flight and time.monotonic() < deadline:
            await asyncio.sleep(_LOOK_S)
            page = await self.page()
        return page

    async def _switch(self, backend: str, faults: Faults) -> None:
        body = msgspec.json.encode(faults)
        async with self._session.post(self._base(backend) + "/sim/faults", data=body) as answer:
            answer.raise_for_status()

    def _config_text(self) -> str:
        entries = [BACKEND_ENTRY.format(name=name, port=self._ports[name], model=MODEL) for name in BACKENDS]
        chain = {"backends": ", ".join(entries), "names": ", ".join(BACKENDS)}
        return CONFIG.format(**self._ports, **chain, folder=self._folder)

    def _base(self, port: str) -> str:
        return f"http://127.0.0.1:{self._ports[port]}"

    def _start_backend(self, name: str) -> None:
        self._start(name, [*_SIM, "--port", str(self._ports[name]), "--model", MODEL, *_SPEED])

    def _start(self, name: str, argv: list[str]) -> None:
        child = Child(name, argv, self._folder / "logs" / f"{name}.log")
        child.start()
        self._children[name] = child

    async def _until_exit(self, name: str, argv: list[str]) -> None:
        self._start(name, argv)
        await self._until(name, partial(self._exited, name))
        if self._children[name].exit_code:
            raise RuntimeError(f"{name} failed:\n{self._children[name].last_lines()}")

    async def _exited(self, name: str) -> bool:
        return self._children[name].exit_code is not None

    async def _until(self, what: str, condition: Callable[[], Awaitable[bool]]) -> None:
        deadline = time.monotonic() + START_PATIENCE_S
        while not await condition():
            if time.monotonic() > deadline:
                ends = "\n".join(f"--- {child.name}\n{child.last_lines(5)}" for child in self._children.values())
                raise RuntimeError(f"waited {START_PATIENCE_S:.0f} s for {what}:\n{ends}")
            await asyncio.sleep(_LOOK_S)

    async def _answers(self, url: str) -> bool:
        try:
            async with self._session.get(url) as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    async def _routes(self) -> bool:
        body = Planned(0.0, stream=True, prompt="Hi").body
        async with self._session.post(self.url + "/v1/chat/completions", json=body) as answer:
            return answer.status == 200 and BACKEND in answer.headers


@asynccontextmanager
async def stack(folder: Path) -> AsyncIterator[Stack]:
    """Everything running, with logs in ``folder``, whose path leaves room for a Unix socket; stopped at the end."""
    timeout = aiohttp.ClientTimeout(total=5)
    # Backends close idle connections: one that was kept may be gone at the moment of its next use.
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        running = Stack(folder, session)
        try:
            await running.start()
            yield running
        finally:
            running.stop()
