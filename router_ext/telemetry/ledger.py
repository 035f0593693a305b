"""What becomes of the ledger that routers share."""

from logging import INFO, WARNING

import structlog

from router_ext.telemetry.metrics import Metrics


class LedgerRecorder:
    """Implements ``ledger.redis.LedgerTelemetry``."""

    def __init__(self, metrics: Metrics, log: structlog.typing.FilteringBoundLogger) -> None:
        self._metrics = metrics
        self._log = log

    def ledger_shared(self, connected: bool, cause: str) -> None:
        """One line."""
        self._log.log(INFO if connected else WARNING, "shared_ledger", connected=connected, cause=cause)

    def ledger_unpushed(self, rows: int) -> None:
        """The gauge."""
        self._metrics.ledger_unpushed.set(rows)
