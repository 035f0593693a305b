"""A whole stack for tests: simulated backends, router_ext and a real Envoy, each a process of its own."""

import json
import os
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from router_ext.config.loader import load
from router_ext.demo.child import Child
from router_ext.envoygen.write import write_envoy_files
from tests.envoy.rig import EnvoyProcess, free_port, short_directory, wait_until

ROUTER_EXT = (sys.executable, "-m", "router_ext.cli.main")
CHAT = "/v1/chat/completions"

SERVER = """\
server:
  port: {ingress}
  egress_port: {egress}
  admin_port: {admin}
  envoy_admin_port: {envoy_admin}
  processor_address: "{processor}"
  envoy_dir: "{folder}/envoy"
  health_check_interval: 2s
"""


@dataclass
class Stack:
    """The running parts. ``sims`` are simulated backends by name; ``rest`` is the configuration below ``server``."""

    folder: Path
    processor: str = ""
    ingress: int = field(default_factory=free_port)
    egress: int = field(default_factory=free_port)
    admin: int = field(default_factory=free_port)
    envoy_admin: int = field(default_factory=free_port)
    sims: dict[str, Child] = field(default_factory=dict)
    sim_ports: dict[str, int] = field(default_factory=dict)
    router: Child = field(init=False)
    envoy: EnvoyProcess = field(init=False)

    def __post_init__(self) -> None:
        self.processor = self.processor or f"unix:{self.folder}/p.sock"

    @property
    def url(self) -> str:
        """Base URL for clients."""
        return f"http://127.0.0.1:{self.ingress}"

    @property
    def admin_url(self) -> str:
        """Base URL of the admin API."""
        return f"http://127.0.0.1:{self.admin}"

    @property
    def config(self) -> Path:
        """The router's configuration file."""
        return self.folder / "router.yaml"

    def write_config(self, rest: str, server_extra: str = "") -> None:
        """Writes the file; ``{name}`` in ``rest`` becomes the port of the simulated backend of that name."""
        server = SERVER.format(**{name: getattr(self, name) for name in _PORT_FIELDS}, folder=self.folder)
        text = server + server_extra + rest
        for name, port in self.sim_ports.items():
            text = text.replace(f"{{{name}}}", str(port))
        temporary = self.config.with_suffix(".new")
        temporary.write_text(text)
        temporary.replace(self.config)

    def start_sim(self, name: str, *arguments: str) -> None:
        """Starts a simulated backend; its port stays the same over restarts."""
        port = self.sim_ports.setdefault(name, free_port())
        argv = [*ROUTER_EXT, "sim-backend", "--port", str(port), "--stable-ids", *arguments]
        self.sims[name] = Child(name, argv, self.folder / f"{name}.log")
        self.sims[name].start()
        wait_until(lambda: self._answers(f"http://127.0.0.1:{port}/health"), f"{name} to serve", 20.0)

    def start_envoy(self) -> None:
        """Renders the configuration and starts Envoy on it."""
        write_envoy_files(load(self.config, os.environ).config, self.folder / "envoy")
        self.envoy = EnvoyProcess(self.folder / "envoy" / "bootstrap.yaml", self.envoy_admin, self.folder)
        self.envoy.start()

    def start_router(self) -> None:
        """Starts router_ext and waits until it is ready."""
        self.router = Child("router", [*ROUTER_EXT, "serve", str(self.config)], self.folder / "router.log")
        self.router.start()
        wait_until(lambda: self._answers(self.admin_url + "/ready"), "router_ext to be ready", 30.0)

    def await_routed(self) -> None:
        """Waits until requests go by way of router_ext. A failure shows the end of its log, and whether it runs."""
        try:
            wait_until(self._is_routed, "requests to be routed", 20.0)
        except AssertionError as error:
            told = f"router_ext has exit code {self.router.exit_code}:\n{self.router.last_lines()}"
            raise AssertionError(f"{error}; {told}") from None

    def stop(self) -> None:
        """Stops every part that runs."""
        for name in ("envoy", "router"):
            if hasattr(self, name):
                getattr(self, name).stop()
        for sim in self.sims.values():
            sim.kill()

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that carry these labels; 0 when there is none."""
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        total = 0.0
        for line in self._get(self.admin_url + "/metrics").decode().splitlines():
            series, _, value = line.rpartition(" ")
            if series.split("{")[0] == name and all(label in series for label in wanted):
                total += float(value)
        return total

    def in_flight(self) -> float:
        """Requests that router_ext counts as open."""
        return self.metric("kronaxis_router_backend_active_requests")

    def in_flight_of(self, backend: str) -> float:
        """Requests that router_ext counts as open at one backend."""
        return self.metric("kronaxis_router_backend_active_requests", backend=backend)

    def sim_in_flight(self, name: str) -> int:
        """Requests that a simulated backend works on."""
        stats = json.loads(self._get(f"http://127.0.0.1:{self.sim_ports[name]}/sim/stats"))
        return int(stats["in_flight"])

    def sim_faults(self, name: str, **faults: Any) -> None:
        """Switches the faults of a simulated backend; none given clears them."""
        self._get(f"http://127.0.0.1:{self.sim_ports[name]}/sim/faults", json.dumps(faults).encode())

    def log_events(self, event: str) -> list[dict[str, Any]]:
        """The router's log lines of one event."""
        lines = (json.loads(line) for line in self.router.log.read_text().splitlines() if line.startswith("{"))
        return [line for line in lines if line.get("event") == event]

    def _is_routed(self) -> bool:
        body = json.dumps(chat("m", max_tokens=1)).encode()
        try:
            return b"x-kronaxis-backend" in self._get(self.url + CHAT, body, headers_only=True)
        except OSError:
            return False

    def _answers(self, url: str) -> bool:
        try:
            self._get(url)
        except OSError:
            return False
        return True

    def _get(self, url: str, body: bytes | None = None, *, headers_only: bool = False) -> bytes:
        request = urllib.request.Request(url, data=body, headers={"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.headers.as_bytes().lower() if headers_only else bytes(answer.read())


NO_PORTS: Mapping[str, int] = {}

_PORT_FIELDS = ("ingress", "egress", "admin", "envoy_admin", "processor")


@contextmanager
def stack(
    rest: str,
    sims: dict[str, Sequence[str]],
    *,
    processor: str = "",
    server_extra: str = "",
    sim_ports: Mapping[str, int] = NO_PORTS,
) -> Iterator[Stack]:
    """A whole stack that routes. ``sims`` gives the arguments of each simulated backend; ``sim_ports`` are the ports of
    those that another stack runs.
    """
    with short_directory() as folder:
        running = Stack(folder, processor, sim_ports=dict(sim_ports))
        try:
            for name, arguments in sims.items():
                running.start_sim(name, *arguments)
            running.write_config(rest, server_extra)
            running.start_envoy()
            running.start_router()
            running.await_routed()
            yield running
        except BaseException:
            _keep_logs(folder)
            raise
        finally:
            running.stop()


def _keep_logs(folder: Path) -> None:
    """Prints the ends of the logs: pytest shows them with the failure."""
    for log in sorted(folder.glob("*.log")):
        lines = log.read_text(errors="replace").splitlines()[-15:]
        print(f"--- {log.name}", *lines, sep="\n")


def chat(model: str, content: str = "Say hello.", **more: Any) -> dict[str, Any]:
    """A chat request."""
    return {"model": model, "messages": [{"role": "user", "content": content}], **more}


def http() -> aiohttp.ClientSession:
    """An HTTP client without a limit on connections."""
    connector = aiohttp.TCPConnector(limit=0)
    return aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=60))
