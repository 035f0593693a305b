"""What becomes of the judges of schemas."""

import structlog

from router_ext.schemas.court import JudgeLoss
from router_ext.telemetry.metrics import Metrics


class JudgeRecorder:
    """Is told of judges that are lost."""

    def __init__(self, metrics: Metrics, log: structlog.typing.FilteringBoundLogger) -> None:
        self._metrics = metrics
        self._log = log

    def judge_lost(self, loss: JudgeLoss) -> None:
        """Counts it; a judge that is only worn is replaced in the course of things."""
        self._metrics.judges_lost.labels(loss.value).inc()
        if loss is not JudgeLoss.WORN:
            self._log.info("schema_judge_lost", reason=loss.value)
