"""What is counted and said of shadows and their log."""

from pathlib import Path

import structlog
from prometheus_client import CollectorRegistry
from structlog.testing import CapturingLogger

from router_ext.dpo.writer import Dropped
from router_ext.model.shadow import ShadowResult
from router_ext.telemetry.lines import shadow_log_recorder
from router_ext.telemetry.metrics import Metrics
from router_ext.telemetry.recorder import Recorder

FILE = Path("shadows.jsonl")


class Rig:
    """Both recorders with their registry and their log."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.captured = CapturingLogger()
        log = structlog.wrap_logger(
            self.captured, processors=[], wrapper_class=structlog.make_filtering_bound_logger(20)
        )
        metrics = Metrics(self.registry)
        self.recorder = Recorder(metrics, log, lambda: 0.0, frozenset())
        self.lines = shadow_log_recorder(metrics, log)

    def value(self, name: str, **labels: str) -> float | None:
        """One sample of ``kronaxis_router_NAME``."""
        return self.registry.get_sample_value(f"kronaxis_router_{name}", labels)


def test_shadows_are_counted_by_test_and_result() -> None:
    """And nothing is said of them."""
    rig = Rig()
    rig.recorder.shadow_ended("t", ShadowResult.COMPARED)
    rig.recorder.shadow_ended("t", ShadowResult.DROPPED)
    rig.recorder.shadow_ended("t", ShadowResult.DROPPED)
    assert rig.value("shadow_total", test="t", result="compared") == 1.0
    assert rig.value("shadow_total", test="t", result="dropped") == 2.0
    assert rig.captured.calls == []


def test_similarities_are_a_histogram() -> None:
    """Its last bucket holds the answers that are the same."""
    rig = Rig()
    for similarity in (0.8, 0.81, 1.0):
        rig.recorder.shadow_similarity("t", similarity)
    found = [
        rig.value("shadow_similarity_bucket", test="t", le=bound) for bound in ("0.7", "0.8", "0.9", "0.95", "1.0")
    ]
    assert found == [0.0, 1.0, 2.0, 2.0, 3.0]


def test_lines_are_counted_and_trouble_with_the_file_is_said() -> None:
    """Once, until it is over."""
    rig = Rig()
    rig.lines.lines_written(3)
    rig.lines.lines_dropped(Dropped.DISK, 2)
    rig.lines.writer_failing(FILE, Dropped.DISK, "ENOSPC")
    rig.lines.writer_recovered(FILE, Dropped.DISK)
    rig.lines.torn_line_cut(FILE, 7)
    assert rig.value("shadow_log_lines_total") == 3.0
    assert rig.value("shadow_log_dropped_total", reason="disk") == 2.0
    assert [(call.method_name, call.kwargs["event"]) for call in rig.captured.calls] == [
        ("warning", "shadow_log_failing"),
        ("info", "shadow_log_recovered"),
        ("warning", "shadow_log_torn_line"),
    ]
