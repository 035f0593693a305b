"""The changing routes above the real owner of the configuration, without an engine."""

from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from router_ext.admin.access import Access
from router_ext.admin.api import admin_app
from router_ext.admin.desk import Desk
from router_ext.admin.new_session import SessionDesk
from router_ext.admin.operations import Live, Operations
from router_ext.admin.routes import changing_routes
from router_ext.admin.status import Status
from router_ext.admin.targets import Targets
from router_ext.config.loader import LoadedConfig
from router_ext.control import Control, begin
from router_ext.engine.pool import Pool
from tests.fakes.audit import RecordingAudit
from tests.fakes.clock import FakeClock
from tests.fakes.telemetry import RecordingTelemetry

FILE = """
backends:
  - {name: a, url: "http://a:8000", type: vllm, model_name: m, api_key: sk-inline-Secret-1}
  - {name: b, url: "http://b:8000", type: vllm, model_name: m, api_key: env:B_API_KEY}
rules:
  - {name: first, priority: 1, match: {service: shop}, backends: [b]}
defaults: {fallback_chain: [a]}
budgets: {shop: {daily_limit_usd: 5}}
"""
ENVIRON = {"B_API_KEY": "sk-environ-Secret-2", "C_API_KEY": "sk-environ-Secret-3"}
NOW_S = 1_700_000_000.0


async def _lookup(host: str, _port: int) -> list[str]:
    return ["169.254.169.254" if host == "metadata.example.org" else "8.8.8.8"]


class ChangeRig:
    """``fail`` is what taking a configuration over raises."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "router.yaml"
        self.file.write_text(FILE)
        self.pool = Pool()
        self.fail: Exception | None = None
        self.audit = RecordingAudit()
        clock, telemetry = FakeClock(wall_s=NOW_S), RecordingTelemetry()
        running = begin(self.file, ENVIRON, None, NOW_S)
        self.pool.configure(running.loaded.config.backends)
        self.control = Control(self.file, ENVIRON, running, self._take_over, telemetry=telemetry, clock=clock)
        live = Live(self.pool.snapshot, self.pool.slots, clock)
        operations = Operations(Desk(self.control, self.audit), live, Targets(allow_private=False, lookup=_lookup))
        sessions = SessionDesk(lambda: None, lambda: running.loaded.config.server, telemetry, self.audit, clock)
        status = Status(
            snapshot=self.pool.snapshot,
            decisions=list,
            is_ready=lambda: True,
            uptime_s=lambda: 1.0,
            registry=CollectorRegistry(),
        )
        routes = changing_routes(lambda: operations, lambda: sessions)
        app = admin_app(status, Access(None, exposed=False), *routes, audit=self.audit)
        self.client = TestClient(app, base_url="http://127.0.0.1")

    def ask(self, method: str, target: str, body: object = None) -> tuple[int, Any]:
        """Status and body of an answer."""
        answer = self.client.request(method, target, json=body)
        return answer.status_code, answer.json()

    def error(self, method: str, target: str, body: object = None) -> tuple[int, str]:
        """Status and code of a refusal."""
        status, answer = self.ask(method, target, body)
        return status, answer["error"]["code"]

    @property
    def kept(self) -> bytes:
        """What stands on disk."""
        path = self.file.parent / "data" / "changes.json"
        return path.read_bytes() if path.exists() else b""

    async def _take_over(self, loaded: LoadedConfig) -> None:
        if self.fail is not None:
            raise self.fail
        self.pool.configure(loaded.config.backends, loaded.config.drained)
