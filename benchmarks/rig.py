"""The processes of a benchmark: one simulated backend, one Envoy, and the processor under test."""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aiohttp
import psutil

from router_ext.demo.child import Child, free_port
from router_ext.envoygen.binary import find_envoy

_PYTHON: Final = sys.executable
_ROUTER_EXT: Final = (_PYTHON, "-m", "router_ext.cli.main")

SERVER: Final = """\
server:
  port: {port}
  egress_port: {egress}
  admin_port: {admin}
  envoy_admin_port: {envoy_admin}
  processor_address: "unix:{folder}/p.sock"
  envoy_dir: "{folder}/envoy"
  health_check_interval: 5s
"""
"""The ``server`` section of every benchmark; what follows it is the benchmark's own."""

CONFIG: Final = (
    SERVER
    + """\
backends:
  - {{name: sim, url: "http://127.0.0.1:{backend}", type: vllm, model_name: sim, max_concurrent: 10000}}
  - {{name: other, url: "http://127.0.0.1:{backend}", type: vllm, model_name: sim, max_concurrent: 10000}}
rules:
  - {{name: vision, priority: 90, match: {{content_type: vision}}, backends: [other]}}
  - {{name: gold, priority: 80, match: {{service: gold, tier: 1}}, backends: [other, sim]}}
  - {{name: all, priority: 10, match: {{model: "sim*"}}, backends: [sim, other], max_cost_1m: 5}}
defaults: {{fallback_chain: [sim]}}
"""
)


@dataclass(slots=True)
class Rig:
    """Running Envoy and backend; the processor is put in and taken out."""

    folder: Path
    port: int
    egress: int
    admin: int
    processor: Child | None = None

    def processor_argv(self, kind: str) -> list[str]:
        """Command line of a processor: ``bare`` or ``router_ext``."""
        if kind == "bare":
            return [_PYTHON, "-m", "benchmarks.bare_processor", f"unix:{self.folder}/p.sock"]
        return [*_ROUTER_EXT, "serve", str(self.folder / "router.yaml")]

    async def use(self, kind: str) -> None:
        """Starts one processor and waits until Envoy asks it."""
        self.drop()
        self.processor = Child(kind, self.processor_argv(kind), self.folder / "logs" / f"{kind}.log")
        self.processor.start()
        body = {"model": "sim", "messages": [{"role": "user", "content": "x"}], "max_tokens": 1}
        started = self.cpu_s()
        for _ in range(600):
            async with aiohttp.ClientSession() as session:
                try:
                    async with session.post(f"http://127.0.0.1:{self.port}/v1/chat/completions", json=body) as answer:
                        ready = answer.status == 200 and await self._asked(kind, answer)
                except aiohttp.ClientError:
                    ready = False
            if ready and self.cpu_s() > started:
                return
            await asyncio.sleep(0.05)
        raise RuntimeError(f"{kind} did not come up:\n{self.processor.last_lines()}")

    async def _asked(self, kind: str, answer: aiohttp.ClientResponse) -> bool:
        if kind == "router_ext":
            return "x-kronaxis-backend" in answer.headers
        return (self.folder / "p.sock").exists() and await self._processor_is_up()

    async def _processor_is_up(self) -> bool:
        url = f"http://127.0.0.1:{self.admin}/clusters?format=json"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            clusters = (await answer.json(content_type=None))["cluster_statuses"]
        hosts = next(c for c in clusters if c["name"] == "router-ext").get("host_statuses", [])
        return bool(hosts) and hosts[0]["health_status"].get("failed_active_health_check") is None

    def drop(self) -> None:
        """Stops the processor."""
        if self.processor is not None:
            self.processor.stop(patience_s=3.0)
            self.processor = None

    def cpu_s(self) -> float:
        """Processor time that the processor has used, user and system, in seconds."""
        if self.processor is None:
            return 0.0
        times = psutil.Process(self.processor.pid).cpu_times()
        return float(times.user + times.system)


@asynccontextmanager
async def rig(decode_tps: int = 1_000_000) -> AsyncIterator[Rig]:
    """Envoy and the backend, which generates ``decode_tps`` tokens a second for each answer; stopped at the end."""
    with tempfile.TemporaryDirectory(prefix="rx") as name:
        folder = Path(name)
        port, egress, router_admin, envoy_admin, backend = (free_port() for _ in range(5))
        config = folder / "router.yaml"
        config.write_text(
            CONFIG.format(
                port=port, egress=egress, admin=router_admin, envoy_admin=envoy_admin, backend=backend, folder=folder
            )
        )
        made = await asyncio.create_subprocess_exec(
            *_ROUTER_EXT, "envoy-config", str(config), stdout=asyncio.subprocess.DEVNULL
        )
        if await made.wait():
            raise RuntimeError("no Envoy configuration")
        speed = ["--prefill-tps", "1000000000", "--decode-tps", str(decode_tps), "--max-num-seqs", "1000"]
        sim = Child(
            "sim", [*_ROUTER_EXT, "sim-backend", "--port", str(backend), "--model", "sim", *speed], folder / "logs/sim"
        )
        bootstrap = str(folder / "envoy" / "bootstrap.yaml")
        envoy_argv = [str(find_envoy()), "-c", bootstrap, "--use-dynamic-base-id", "--log-level", "error"]
        envoy = Child("envoy", [*envoy_argv, "--concurrency", "1"], folder / "logs/envoy")
        running = Rig(folder, port, egress, envoy_admin)
        try:
            sim.start()
            envoy.start()
            yield running
        finally:
            running.drop()
            envoy.stop(2.0)
            sim.stop(2.0)
