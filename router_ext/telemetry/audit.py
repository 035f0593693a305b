"""Changes through the admin API in metrics and logs."""

from collections.abc import Mapping

import structlog

from router_ext.telemetry.metrics import Metrics


class AuditRecorder:
    """Implements ``admin.audit.AuditSink``."""

    def __init__(self, metrics: Metrics, log: structlog.typing.FilteringBoundLogger) -> None:
        self._metrics = metrics
        self._log = log

    def admin_change(self, action: str, result: str, about: Mapping[str, object]) -> None:
        """Counts the attempt, with one line."""
        self._metrics.admin_changes.labels(action, result).inc()
        self._log.info("admin_change", action=action, result=result, **about)
