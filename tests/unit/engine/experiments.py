"""A/B tests without an engine around them."""

from typing import Any

from router_ext.config.sections import AbTest
from router_ext.engine.experiments import Experiments
from router_ext.model.experiment import Assignment
from router_ext.model.rule import Match
from tests.fakes.clock import FakeClock
from tests.fakes.domain import backend
from tests.fakes.telemetry import RecordingTelemetry

NAMES = ("a", "b", "c")
PRICED = {name: backend(name, cost=2.0) for name in NAMES}
"""Two micro-dollars a token."""

OF_B = Assignment("cheaper", "b", "b", "a")
"""A caller of variant B of ``split()``."""


def split(name: str = "cheaper", match: Match | None = None, **changes: Any) -> AbTest:
    """A test of ``a`` against ``b`` in which half of all callers have B."""
    values: dict[str, Any] = {"variant_a": "a", "variant_b": "b", "split_pct": 50.0} | changes
    return AbTest(name, match or Match(), **values)


def experiments(*tests: AbTest) -> Experiments:
    """These tests, without anything counted."""
    made = Experiments(RecordingTelemetry(), FakeClock())
    made.configure(tests)
    return made
