"""What becomes of the lines of the shadow log."""

from pathlib import Path

import structlog

from router_ext.dpo.writer import Dropped
from router_ext.telemetry.metrics import Metrics


class ShadowLogRecorder:
    """Implements ``dpo.writer.WriterTelemetry``."""

    def __init__(self, metrics: Metrics, log: structlog.typing.FilteringBoundLogger) -> None:
        self._metrics = metrics
        self._log = log

    def lines_written(self, count: int) -> None:
        """Counts the comparisons."""
        self._metrics.shadow_log_lines.inc(count)

    def lines_dropped(self, reason: Dropped, count: int) -> None:
        """Counts them."""
        self._metrics.shadow_log_dropped.labels(reason.value).inc(count)

    def writer_failing(self, path: Path, reason: Dropped, cause: str) -> None:
        """One line, until it has recovered."""
        self._log.warning("shadow_log_failing", path=str(path), reason=reason.value, cause=cause)

    def writer_recovered(self, path: Path, reason: Dropped) -> None:
        """One line."""
        self._log.info("shadow_log_recovered", path=str(path), reason=reason.value)

    def torn_line_cut(self, path: Path, size_bytes: int) -> None:
        """One line."""
        self._log.warning("shadow_log_torn_line", path=str(path), bytes=size_bytes)
