"""The processes of a run: simulated backends, router_ext and Envoy. Each benchmark says which and how."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import aiohttp
import msgspec

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

_ENGINE: Final = ("--prefill-tps", "1000000000", "--max-num-seqs", "1000", "--max-model-len", "1000000")


@dataclass(frozen=True, slots=True)
class Setup:
    """What differs between runs. ``config`` follows the section ``server``, where ``{name}`` is the port of the backend
    of that name; ``backends`` are further arguments of each. The first one serves the model ``sim``. Envoy has
    ``envoy_threads`` of its own, all cores with 0.
    """

    config: str
    backends: Mapping[str, tuple[str, ...]]
    envoy_threads: int = 1


class Stack:
    """The running parts; their logs are in ``folder``/logs."""

    def __init__(self, folder: Path, setup: Setup, client: aiohttp.ClientSession) -> None:
        self._folder = folder
        self._setup = setup
        self._client = client
        self._ports = {name: free_port() for name in ("port", "egress", "admin", "envoy_admin", *setup.backends)}
        self._children: dict[str, Child] = {}

    @property
    def port(self) -> int:
        """Where clients connect."""
        return self._ports["port"]

    @property
    def router_pid(self) -> int:
        """The process id of router_ext."""
        return self._children["router_ext"].pid

    async def start(self) -> None:
        """Starts everything, and returns when requests are routed. Raises RuntimeError with the end of each log."""
        config = self._folder / "router.yaml"
        config.write_text(self._config_text())
        await self._until_exit("envoy-config", [*_ROUTER_EXT, "envoy-config", str(config)])
        for name in self._setup.backends:
            self.start_backend(name)
        for name in self._setup.backends:
            await self._until(f"backend {name}", partial(self._answers, self._base(name) + "/health"))
        bootstrap = str(self._folder / "envoy" / "bootstrap.yaml")
        envoy = [str(find_envoy()), "-c", bootstrap, "--use-dynamic-base-id", "--log-level", "error"]
        threads = ("--concurrency", str(self._setup.envoy_threads)) if self._setup.envoy_threads else ()
        self._start("envoy", [*envoy, *threads])
        self._start("router_ext", [*_ROUTER_EXT, "serve", str(config)])
        await self.until_routed()

    def start_backend(self, name: str) -> None:
        """Starts a backend, also one that was killed, on its port."""
        arguments = (*_ENGINE, *self._setup.backends[name])
        self._start(name, [*_SIM, "--port", str(self._ports[name]), *arguments])

    def kill_backend(self, name: str) -> None:
        """``kill -9``; returns when the process is gone."""
        self._children[name].kill()

    async def kill_router(self) -> None:
        """``kill -9`` to router_ext, which is started again at once, on the same sockets."""
        router = self._children["router_ext"]
        await asyncio.to_thread(router.kill)
        router.start()

    async def until_routed(self) -> None:
        """Returns when router_ext is ready and Envoy asks it."""
        await self._until("router_ext", partial(self._answers, self._base("admin") + "/ready"))
        await self._until("a routed request", self._routes)

    async def switch(self, backend: str, faults: Faults) -> None:
        """Makes something go wrong at a backend from now on, or right again."""
        async with self._client.post(self._base(backend) + "/sim/faults", data=msgspec.json.encode(faults)) as answer:
            answer.raise_for_status()

    async def metrics(self) -> str:
        """The metrics page of router_ext."""
        async with self._client.get(self._base("admin") + "/metrics") as answer:
            answer.raise_for_status()
            return await answer.text()

    def stop(self) -> None:
        """Stops what runs, Envoy first so that no request meets a missing part."""
        for name in ("envoy", "router_ext", *self._setup.backends):
            if name in self._children:
                self._children[name].stop(patience_s=3.0)

    def _config_text(self) -> str:
        text = SERVER.format(**self._ports, folder=self._folder) + self._setup.config
        for name in self._setup.backends:
            text = text.replace(f"{{{name}}}", str(self._ports[name]))
        return text

    def _base(self, port: str) -> str:
        return f"http://127.0.0.1:{self._ports[port]}"

    def _start(self, name: str, argv: list[str]) -> None:
        child = self._children[name] = Child(name, argv, self._folder / "logs" / f"{name}.log")
        child.start()

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
            async with self._client.get(url) as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    async def _routes(self) -> bool:
        body = {"model": "sim", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
        async with self._client.post(self._base("port") + "/v1/chat/completions", json=body) as answer:
            return answer.status == 200 and BACKEND in answer.headers


@asynccontextmanager
async def stack(folder: Path, setup: Setup) -> AsyncIterator[Stack]:
    """Everything running, with logs in ``folder``, a short path for the sake of a Unix socket; stopped at the end."""
    # Backends close idle connections: one that was kept may be gone at the moment of its next use.
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=5)) as client:
        running = Stack(folder, setup, client)
        try:
            await running.start()
            yield running
        finally:
            running.stop()
