"""QM-09: Prometheus text and OpenMetrics differ, and both are read."""

from router_ext.health.load import QueueReading
from router_ext.scrape.queue_page import PageNames, QueuePage, read_queue_page

NAMES = PageNames(
    waiting="w_bucket", running="w_count", kv_usage=("w_sum",), prompt_tokens="q_total", start_time=("w_created",)
)
PAGE = """# TYPE q counter
q_total 3
# TYPE w histogram
w_bucket{le="1"} 3 # {trace_id="abc"} 0.5 1.7e9
w_count 3
w_sum 1
# TYPE w_created gauge
w_created 1.6e9
"""
EXPECTED = QueuePage(
    QueueReading(waiting=3.0, running=3.0, kv_usage=1.0, start_time=1.6e9, prompt_tokens=3.0), errors=0
)


def test_samples_are_found_by_their_own_names() -> None:
    """``q_total`` belongs to family ``q`` and ``w_bucket`` to ``w``; the exemplar is no value."""
    assert read_queue_page(PAGE.encode(), NAMES) == EXPECTED


def test_the_end_mark_may_be_there_or_not() -> None:
    """A page may end without ``# EOF``, as above."""
    assert read_queue_page(PAGE.encode() + b"# EOF\n", NAMES) == EXPECTED


def test_a_family_name_is_no_sample_name() -> None:
    """``q`` and ``w`` name no line of the page."""
    names = PageNames(waiting="q", running="w", kv_usage=(), prompt_tokens="w_total")
    assert read_queue_page(PAGE.encode(), names) == QueuePage(None, 0)
