"""What becomes of preference pairs and of the judges of schemas."""

from pathlib import Path

import structlog

from router_ext.dpo.writer import Dropped
from router_ext.schemas.court import JudgeLoss
from router_ext.telemetry.metrics import Metrics


class GateRecorder:
    """Implements ``dpo.writer.WriterTelemetry`` and ``dpo.export.ExportTelemetry``, and is told of lost judges."""

    def __init__(self, metrics: Metrics, log: structlog.typing.FilteringBoundLogger) -> None:
        self._metrics = metrics
        self._log = log

    def lines_written(self, count: int) -> None:
        """Counts the pairs."""
        self._metrics.dpo_pairs.inc(count)

    def lines_dropped(self, reason: Dropped, count: int) -> None:
        """Counts them."""
        self._metrics.dpo_dropped.labels(reason.value).inc(count)

    def pair_unfit(self, reason: str) -> None:
        """Counts the rescue."""
        self._metrics.dpo_dropped.labels(reason).inc()

    def writer_failing(self, path: Path, reason: Dropped, cause: str) -> None:
        """One line, until it has recovered."""
        self._log.warning("dpo_failing", path=str(path), reason=reason.value, cause=cause)

    def writer_recovered(self, path: Path, reason: Dropped) -> None:
        """One line."""
        self._log.info("dpo_recovered", path=str(path), reason=reason.value)

    def torn_line_cut(self, path: Path, size_bytes: int) -> None:
        """One line."""
        self._log.warning("dpo_torn_line", path=str(path), bytes=size_bytes)

    def judge_lost(self, loss: JudgeLoss) -> None:
        """Counts it; a judge that is only worn is replaced in the course of things."""
        self._metrics.judges_lost.labels(loss.value).inc()
        if loss is not JudgeLoss.WORN:
            self._log.info("schema_judge_lost", reason=loss.value)
