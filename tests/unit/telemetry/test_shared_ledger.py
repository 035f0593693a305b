"""Samples and lines of the ledger that routers share."""

import structlog
from prometheus_client import CollectorRegistry
from structlog.testing import CapturingLogger

from router_ext.telemetry.ledger import LedgerRecorder
from router_ext.telemetry.metrics import Metrics

GAUGE = "kronaxis_router_ledger_unpushed_rows"


def test_rows_that_wait_are_a_gauge_and_the_connection_is_a_line() -> None:
    """A warning with the cause when it is lost."""
    registry, captured = CollectorRegistry(), CapturingLogger()
    log = structlog.wrap_logger(captured, processors=[], wrapper_class=structlog.make_filtering_bound_logger(20))
    recorder = LedgerRecorder(Metrics(registry), log)
    assert registry.get_sample_value(GAUGE) == 0
    recorder.ledger_unpushed(7)
    assert registry.get_sample_value(GAUGE) == 7
    recorder.ledger_shared(True, "")
    recorder.ledger_shared(False, "ConnectionError")
    told = [(call.method_name, call.kwargs) for call in captured.calls]
    assert told == [
        ("info", {"event": "shared_ledger", "connected": True, "cause": ""}),
        ("warning", {"event": "shared_ledger", "connected": False, "cause": "ConnectionError"}),
    ]
