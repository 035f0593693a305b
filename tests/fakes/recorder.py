"""The real recorder, with a registry and a log that tests can read."""

from typing import Any

import structlog
from prometheus_client import CollectorRegistry
from structlog.testing import CapturingLogger

from router_ext.telemetry.metrics import Metrics
from router_ext.telemetry.recorder import Recorder

Series = dict[tuple[str, ...], float]


class RecorderRig:
    """A recorder whose configuration names the service ``shop``."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._captured = CapturingLogger()
        log = structlog.wrap_logger(
            self._captured, processors=[], wrapper_class=structlog.make_filtering_bound_logger(20)
        )
        self.recorder = Recorder(Metrics(self.registry), log, lambda: 1_700_000_000.0, frozenset({"shop"}))

    def lines(self) -> list[dict[str, Any]]:
        """Every log line so far, its level among its fields."""
        return [{"level": call.method_name, **call.kwargs} for call in self._captured.calls]

    def series(self, name: str) -> Series:
        """The samples of ``kronaxis_router_NAME`` by label values in the order of the label names."""
        return {
            tuple(sample.labels[label] for label in sorted(sample.labels)): sample.value
            for family in self.registry.collect()
            for sample in family.samples
            if sample.name == f"kronaxis_router_{name}"
        }

    def count_series(self) -> int:
        """How many samples a scrape would return."""
        return sum(len(family.samples) for family in self.registry.collect())
