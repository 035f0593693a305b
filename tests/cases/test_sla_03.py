"""SLA-03: times to first token were divided by the length of the answer, so a slow backend with long ones won."""

from router_ext.health.latency import TtftWindow
from router_ext.model.snapshot import TtftStats


def _after_ten_requests(ttft_s: float) -> TtftStats:
    window = TtftWindow()
    for at in range(10):
        window.add(ttft_s, 1000.0 + at)
    return window.stats


def test_backends_compare_by_their_raw_times() -> None:
    """0.4 s with answers of 5 tokens are better than 3 s with 500: the length is not even known here."""
    fast, slow = _after_ten_requests(0.4), _after_ten_requests(3.0)
    assert (fast.p50_ms, fast.p95_ms) == (400.0, 400.0)
    assert (slow.p50_ms, slow.p95_ms) == (3_000.0, 3_000.0)
