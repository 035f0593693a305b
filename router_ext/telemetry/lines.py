"""What becomes of the lines of a file."""

from pathlib import Path

import structlog
from prometheus_client import Counter

from router_ext.dpo.writer import Dropped
from router_ext.telemetry.metrics import Metrics


class LinesRecorder:
    """Implements ``dpo.making.LinesTelemetry`` for one file. Its log events begin with ``name``."""

    def __init__(
        self,
        name: str,
        metrics: Metrics,
        log: structlog.typing.FilteringBoundLogger,
        *,
        written: Counter,
        dropped: Counter,
    ) -> None:
        self._name = name
        self._metrics = metrics
        self._log = log
        self._written = written
        self._dropped = dropped

    def lines_written(self, count: int) -> None:
        """Counts them."""
        self._written.inc(count)

    def lines_dropped(self, reason: Dropped, count: int) -> None:
        """Counts them."""
        self._dropped.labels(reason.value).inc(count)

    def line_unfit(self, reason: str) -> None:
        """Counts what is none."""
        self._dropped.labels(reason).inc()

    def making_failed(self, error: BaseException) -> None:
        """Counts the bug, with its traceback in the log."""
        self._metrics.faults.labels(self._name).inc()
        self._log.error("fault", place=self._name, exc_info=error)

    def writer_failing(self, path: Path, reason: Dropped, cause: str) -> None:
        """One line, until it has recovered."""
        self._log.warning(f"{self._name}_failing", path=str(path), reason=reason.value, cause=cause)

    def writer_recovered(self, path: Path, reason: Dropped) -> None:
        """One line."""
        self._log.info(f"{self._name}_recovered", path=str(path), reason=reason.value)

    def torn_line_cut(self, path: Path, size_bytes: int) -> None:
        """One line."""
        self._log.warning(f"{self._name}_torn_line", path=str(path), bytes=size_bytes)


def pairs_recorder(metrics: Metrics, log: structlog.typing.FilteringBoundLogger) -> LinesRecorder:
    """That of preference pairs."""
    return LinesRecorder("dpo", metrics, log, written=metrics.dpo_pairs, dropped=metrics.dpo_dropped)


def shadow_log_recorder(metrics: Metrics, log: structlog.typing.FilteringBoundLogger) -> LinesRecorder:
    """That of the shadow log."""
    counters = metrics.shadow_log_lines, metrics.shadow_log_dropped
    return LinesRecorder("shadow_log", metrics, log, written=counters[0], dropped=counters[1])
