"""The router in a process of its own, without an Envoy, to be asked over HTTP."""

import json
import os
import socket
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from router_ext.config.loader import load
from router_ext.demo.child import Child, free_port
from router_ext.envoygen.write import write_envoy_files
from tests.envoy.rig import short_directory, wait_until

TOKEN = "t0ken-of-the-test"

CONFIG = """
server:
  port: {0}
  egress_port: {1}
  admin_port: {2}
  envoy_admin_port: {3}
  processor_address: "unix:{folder}/p.sock"
  sessions: {{enabled: true}}
backends:
  - {{name: a, url: "http://127.0.0.1:9", type: vllm, model_name: m}}
  - {{name: b, url: "http://127.0.0.1:9", type: vllm, model_name: m, api_key: sk-inline-Secret-1}}
rules:
  - {{name: first, priority: 1, match: {{service: shop}}, backends: [a]}}
defaults: {{fallback_chain: [a]}}
budgets: {{shop: {{daily_limit_usd: 5}}}}
ab_tests:
  - {{name: t, match: {{}}, variant_a: a, variant_b: b, split_pct: 0}}
"""


@dataclass
class AdminProcess:
    """A running router. ``config`` is its file, ``port`` that of its admin API."""

    folder: Path
    config: Path
    port: int
    child: Child

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def ask(self, target: str, method: str = "GET", body: object = None, token: str = TOKEN) -> tuple[int, Any]:
        """Status and JSON of an answer."""
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + target, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read() or b"null")

    def raw(self, request: bytes) -> bytes:
        """What the port sends back to these bytes until it closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(request)
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
        return b"".join(parts)

    @property
    def log(self) -> str:
        """What it has logged."""
        return self.child.log.read_text()


@contextmanager
def admin_process(environ: Mapping[str, str], config: str = CONFIG) -> Iterator[AdminProcess]:
    """A router that answers, with these variables beside those of the test."""
    with short_directory() as folder:
        ports = [free_port() for _ in range(4)]
        file = folder / "router.yaml"
        file.write_text(config.format(*ports, folder=folder))
        write_envoy_files(load(file, os.environ).config, folder / "envoy")
        argv = [sys.executable, "-m", "router_ext.cli.main", "serve", str(file)]
        child = Child("router", argv, folder / "router.log", environ)
        child.start()
        running = AdminProcess(folder, file, ports[2], child)
        try:
            wait_until(lambda: _answers(running), "the router to answer", 30.0)
            yield running
        finally:
            child.stop()


def _answers(running: AdminProcess) -> bool:
    try:
        return running.ask("/health")[0] == 200
    except OSError:
        return False
