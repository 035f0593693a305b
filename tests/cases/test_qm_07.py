"""QM-07: one malformed value must not spoil the page."""

import pytest

from router_ext.health.load import QueueReading
from router_ext.model.backend import BackendType
from router_ext.scrape.queue_page import PAGE_NAMES, QueuePage, read_queue_page


@pytest.mark.parametrize(
    "malformed",
    [
        "some_exporter_cpu 8123n",
        'some_exporter_cpu{node="n1" 8123n',
        'vllm:kv_cache_usage_perc{engine="0",model_name="m-a"} 12%',
        'vllm:num_requests_waiting{engine="1",model_name="m-a} 5',
    ],
)
def test_the_other_lines_are_read_and_one_error_is_counted(malformed: str) -> None:
    """Whether the line is needed or not: 5 waiting, 2 running."""
    page = f"""vllm:num_requests_waiting{{engine="0",model_name="m-a"}} 5.0
{malformed}
vllm:num_requests_running{{engine="0",model_name="m-a"}} 2.0
"""
    seen = read_queue_page(page.encode(), PAGE_NAMES[BackendType.VLLM], "m-a")
    assert seen == QueuePage(QueueReading(waiting=5.0, running=2.0), errors=1)
