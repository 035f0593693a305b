"""The demo's processes: three engines, router_ext and Envoy, and the configuration that joins them."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import aiohttp

from router_ext.admin.targets import PRIVATE_VARIABLE
from router_ext.demo.child import Child, free_port
from router_ext.envoygen.binary import find_envoy
from router_ext.model.headers import BACKEND

START_PATIENCE_S: Final = 40.0
_LOOK_S: Final = 0.05


class EngineKind(StrEnum):
    """Which engines serve the small model: real llama.cpp servers, or simulated vLLM."""

    LLAMA = "llama"
    SIM = "sim"


class DemoError(Exception):
    """The demo cannot go on; the message says why."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Every port of the demo; the usual one where it is free."""

    ingress: int
    egress: int
    admin: int
    envoy_admin: int
    engines: tuple[int, int, int]

    @classmethod
    def pick(cls) -> "Ports":
        """Ports that are free now."""
        ingress, egress, admin, envoy_admin = (free_port(port) for port in (8050, 8051, 8052, 8053))
        a, b, c = (free_port(port) for port in (8101, 8102, 8103))
        return cls(ingress, egress, admin, envoy_admin, (a, b, c))


CONFIG: Final = """\
# Written by `router-ext demo`. A change is taken over within five seconds.
server:
  port: {ports.ingress}
  egress_port: {ports.egress}
  admin_port: {ports.admin}
  envoy_admin_port: {ports.envoy_admin}
  processor_address: "unix:{folder}/processor.sock"
  envoy_dir: "{envoy_dir}"
  health_check_interval: 2s
backends:
  - name: engine-a
    url: "http://127.0.0.1:{a}"
    type: {type}
    model_name: smollm2
    aliases: [small, large]
    max_concurrent: 2
  - name: engine-b
    url: "http://127.0.0.1:{b}"
    type: {type}
    model_name: smollm2
    aliases: [small, large]
    max_concurrent: 2
  - name: strong
    url: "http://127.0.0.1:{c}"
    type: vllm
    model_name: smollm2
    aliases: [small, large]
    capabilities: [json_output]
    cost_input_1m: 0.5
    cost_output_1m: 1.5
rules:
  - {{name: premium, priority: 100, match: {{service: premium}}, backends: [strong]}}
  - {{name: large-model, priority: 50, match: {{model: large}}, backends: [strong]}}
  - name: json
    priority: 40
    match: {{call_type: extract}}
    backends: [engine-a, strong]
    required_capabilities: [json_output]
defaults: {{fallback_chain: [engine-a, engine-b, strong]}}
quality_gate: {{enabled: true, fallback_backend: strong, sample_rate: 0}}
"""


class Stack:
    """The running demo. Processes are named ``engine-a``, ``engine-b``, ``strong``, ``router`` and ``envoy``."""

    def __init__(self, kind: EngineKind, folder: Path, envoy_dir: Path, ports: Ports) -> None:
        self.kind = kind
        self.ports = ports
        self.config = folder / "router.yaml"
        self._folder = folder
        self._envoy_dir = envoy_dir
        self.children: dict[str, Child] = {}

    @property
    def ingress(self) -> str:
        """Base URL for clients."""
        return f"http://127.0.0.1:{self.ports.ingress}"

    @property
    def admin(self) -> str:
        """Base URL of the admin API."""
        return f"http://127.0.0.1:{self.ports.admin}"

    async def start(self) -> None:
        """Starts everything and returns when requests are served. Raises DemoError."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self.config.write_text(self._config_text())
        await self._run_once("envoy-config", [*_ROUTER_EXT, "envoy-config", str(self.config)])
        a, b, c = self.ports.engines
        self._start("engine-a", self._engine(a))
        self._start("engine-b", self._engine(b))
        self._start("strong", _sim(c, prefill_tps=20_000, decode_tps=200))
        self.start_router()
        bootstrap = self._envoy_dir / "bootstrap.yaml"
        self._start("envoy", [str(find_envoy()), "-c", str(bootstrap), "--use-dynamic-base-id", "--log-level", "warn"])
        await self.until("everything to be healthy", self._all_healthy)
        await self.until("Envoy to ask router_ext", self.routed)

    def start_router(self) -> None:
        """Starts router_ext, also after it was killed."""
        # The demo's engines are on this machine, and so is what a visitor may add.
        self._start("router", [*_ROUTER_EXT, "serve", str(self.config)], {PRIVATE_VARIABLE: "true"})

    def stop(self) -> None:
        """Stops everything, Envoy first so that no request meets a missing part."""
        for name in ("envoy", "router", "engine-a", "engine-b", "strong"):
            if name in self.children:
                self.children[name].stop(patience_s=2.0)

    async def until(
        self, what: str, condition: Callable[[], Awaitable[bool]], patience_s: float = START_PATIENCE_S
    ) -> None:
        """Waits for a condition. Raises DemoError when it takes too long or a process has died meanwhile."""
        deadline = time.monotonic() + patience_s
        while not await condition():
            self._check_alive()
            if time.monotonic() > deadline:
                raise DemoError(f"waited {patience_s:.0f} s for {what}; logs are in {self._folder / 'logs'}")
            await asyncio.sleep(_LOOK_S)

    def _check_alive(self) -> None:
        for child in self.children.values():
            if child.exit_code not in (None, -9):
                raise DemoError(f"{child.name} ended with code {child.exit_code}:\n{child.last_lines()}")

    async def routed(self) -> bool:
        """True once a request goes by way of router_ext and is answered."""
        request = {"model": "small", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
        url = self.ingress + "/v1/chat/completions"
        async with aiohttp.ClientSession() as session, session.post(url, json=request) as answer:
            return answer.status == 200 and BACKEND in answer.headers

    async def _all_healthy(self) -> bool:
        try:
            async with aiohttp.ClientSession() as session, session.get(self.admin + "/health") as answer:
                health = await answer.json()
            async with aiohttp.ClientSession() as session, session.get(self.admin + "/ready") as answer:
                ready = answer.status == 200
        except (aiohttp.ClientError, TimeoutError):
            return False
        return ready and all(backend["health"] == "healthy" for backend in health["backends"])

    def _start(self, name: str, argv: list[str], environ: Mapping[str, str] | None = None) -> None:
        child = Child(name, argv, self._folder / "logs" / f"{name}.log", environ)
        child.start()
        self.children[name] = child

    async def _run_once(self, name: str, argv: list[str]) -> None:
        process = await asyncio.create_subprocess_exec(
            *argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        output, _ = await process.communicate()
        if process.returncode:
            raise DemoError(f"{name} failed:\n{output.decode(errors='replace')}")

    def _config_text(self) -> str:
        a, b, c = self.ports.engines
        engine_type = "llamacpp" if self.kind is EngineKind.LLAMA else "vllm"
        return CONFIG.format(
            ports=self.ports, folder=self._folder, envoy_dir=self._envoy_dir, a=a, b=b, c=c, type=engine_type
        )

    def _engine(self, port: int) -> list[str]:
        if self.kind is EngineKind.SIM:
            return _sim(port, prefill_tps=8_000, decode_tps=60)
        return [sys.executable, "-m", "router_ext.demo.llama_engine", "--port", str(port), "--model-alias", "smollm2"]


_ROUTER_EXT: Final = (sys.executable, "-m", "router_ext.cli.main")


def _sim(port: int, *, prefill_tps: int, decode_tps: int) -> list[str]:
    names = ["--model", "smollm2", "--alias", "small", "--alias", "large"]
    speed = ["--prefill-tps", str(prefill_tps), "--decode-tps", str(decode_tps)]
    return [*_ROUTER_EXT, "sim-backend", "--port", str(port), *names, *speed]
