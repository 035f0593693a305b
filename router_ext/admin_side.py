"""The admin application of one process, out of the parts that the process runs on."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, FastAPI

from router_ext.admin.ab_tests import ab_test_routes
from router_ext.admin.access import Access
from router_ext.admin.api import admin_app
from router_ext.admin.budgets import budget_routes
from router_ext.admin.config import reread_routes
from router_ext.admin.costs import Costs, SharedLedger, cost_routes
from router_ext.admin.desk import Desk
from router_ext.admin.explain import EngineExplains, explain_routes
from router_ext.admin.new_session import SessionDesk
from router_ext.admin.operations import Live, Operations
from router_ext.admin.routes import changing_routes
from router_ext.admin.status import Status
from router_ext.admin.targets import Targets
from router_ext.control import Control
from router_ext.engine.engine import Engine
from router_ext.ports import Clock, Ledger, SessionStore, Telemetry
from router_ext.telemetry.audit import AuditRecorder
from router_ext.telemetry.log import get_logger
from router_ext.telemetry.metrics import Metrics


@dataclass(slots=True)
class AdminSide:
    """What the application stands on. The figures count from its making.

    ``sessions`` gives None while they are not enabled; ``shared_ledger`` is None where no other router shares the
    ledger. A worker (``is_worker``) takes what its supervisor says of other workers, and has no tools for assistants:
    its supervisor has them.
    """

    access: Access
    engine: Engine
    control: Control
    clock: Clock
    telemetry: Telemetry
    metrics: Metrics
    targets: Targets
    ledger: Ledger
    shared_ledger: SharedLedger | None
    sessions: Callable[[], SessionStore | None]
    is_ready: Callable[[], bool]
    is_worker: bool
    _started_at: float = field(init=False)

    def __post_init__(self) -> None:
        self._started_at = self.clock.monotonic()

    def app(self) -> FastAPI:
        """The application, not served yet."""
        audit, limit = AuditRecorder(self.metrics, get_logger()), self.engine.config.server.max_body_bytes
        routes = self._routes(audit)
        app = admin_app(self._status(), self.access, *routes, audit=audit, max_conversation_bytes=lambda: limit)
        if not self.is_worker:
            # Here, so that workers do without 25 MB of modules.
            from router_ext.mcp.mount import serve_mcp

            serve_mcp(app, self.telemetry.fault)
        return app

    def _routes(self, audit: AuditRecorder) -> list[APIRouter]:
        pool = self.engine.pool
        operations = Operations(Desk(self.control, audit), Live(pool.snapshot, pool.slots, self.clock), self.targets)
        sessions = SessionDesk(self.sessions, lambda: self.engine.config.server, self.telemetry, audit, self.clock)
        routes = [
            *changing_routes(lambda: operations, lambda: sessions),
            cost_routes(self._costs()),
            budget_routes(self._budgets),
            ab_test_routes(self._ab_tests),
            explain_routes(EngineExplains(self.engine)),
        ]
        return [*routes, reread_routes(lambda: operations)] if self.is_worker else routes

    def _status(self) -> Status:
        return Status(
            snapshot=self.engine.pool.snapshot,
            decisions=lambda: self.engine.recent,
            is_ready=self.is_ready,
            uptime_s=lambda: self.clock.monotonic() - self._started_at,
            registry=self.metrics.registry,
        )

    def _costs(self) -> Costs:
        engine, clock = self.engine, self.clock
        return Costs(
            self.ledger,
            lambda: engine.spend.totals(clock.wall()),
            lambda: engine.config.budgets,
            lambda: engine.charges.last_hour.totals(clock.monotonic()),
            clock,
            lambda: engine.config.server.timezone,
            self.shared_ledger,
        )

    async def _budgets(self) -> list[dict[str, Any]]:
        return self.engine.budgets.report()

    async def _ab_tests(self) -> list[dict[str, Any]]:
        return self.engine.shadow.with_reports(self.engine.experiments.report())
