"""What is counted and said of preference pairs and judges."""

from pathlib import Path

import structlog
from prometheus_client import CollectorRegistry
from structlog.testing import CapturingLogger

from router_ext.dpo.writer import Dropped
from router_ext.schemas.court import JudgeLoss
from router_ext.telemetry.judges import JudgeRecorder
from router_ext.telemetry.lines import pairs_recorder
from router_ext.telemetry.metrics import Metrics

FILE = Path("pairs.jsonl")


class Rig:
    """Both recorders with their registry and their log."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.captured = CapturingLogger()
        log = structlog.wrap_logger(
            self.captured, processors=[], wrapper_class=structlog.make_filtering_bound_logger(20)
        )
        metrics = Metrics(self.registry)
        self.recorder, self.judges = pairs_recorder(metrics, log), JudgeRecorder(metrics, log)

    def value(self, name: str, **labels: str) -> float | None:
        """One sample of ``kronaxis_router_NAME``."""
        return self.registry.get_sample_value(f"kronaxis_router_{name}", labels)

    @property
    def events(self) -> list[tuple[str, str]]:
        """Level and event of each line."""
        return [(call.method_name, call.kwargs["event"]) for call in self.captured.calls]


def test_pairs_and_lines_that_gave_none_are_counted() -> None:
    """Whether the rescue was no pair, or its line was not written."""
    rig = Rig()
    rig.recorder.lines_written(3)
    rig.recorder.lines_dropped(Dropped.DISK, 2)
    rig.recorder.line_unfit("media")
    assert rig.value("dpo_pairs_total") == 3.0
    assert rig.value("dpo_dropped_total", reason="disk") == 2.0
    assert rig.value("dpo_dropped_total", reason="media") == 1.0
    assert rig.events == []


def test_trouble_with_the_file_is_said() -> None:
    """When it begins and when it is over; and what a crash left."""
    rig = Rig()
    rig.recorder.writer_failing(FILE, Dropped.DISK, "ENOSPC")
    rig.recorder.writer_recovered(FILE, Dropped.DISK)
    rig.recorder.torn_line_cut(FILE, 12)
    assert rig.events == [("warning", "dpo_failing"), ("info", "dpo_recovered"), ("warning", "dpo_torn_line")]


def test_a_lost_judge_is_counted_and_said_unless_it_was_only_worn() -> None:
    """Those are replaced in the course of things."""
    rig = Rig()
    rig.judges.judge_lost(JudgeLoss.DEADLINE)
    rig.judges.judge_lost(JudgeLoss.WORN)
    assert rig.value("schema_judges_lost_total", reason="deadline") == 1.0
    assert rig.value("schema_judges_lost_total", reason="worn") == 1.0
    assert rig.events == [("info", "schema_judge_lost")]


def test_a_bug_is_counted_and_said() -> None:
    """As every other one, under a place of its own."""
    rig = Rig()
    rig.recorder.making_failed(ValueError("x"))
    assert rig.value("faults_total", place="dpo") == 1.0
    assert rig.events == [("error", "fault")]
