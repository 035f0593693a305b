"""QM-02: a gauge that appears once for each process of an engine."""

import pytest

from router_ext.model.backend import BackendType
from router_ext.scrape.queue_page import PAGE_NAMES, QueuePage, read_queue_page

QUEUES = """
vllm:num_requests_waiting{engine="0",model_name="m-a",pid="41"} 0.0
vllm:num_requests_waiting{engine="0",model_name="m-a",pid="43"} 5.0
vllm:num_requests_running{engine="0",model_name="m-a",pid="43"} 2.0
vllm:num_requests_running{engine="0",model_name="m-a",pid="47"} 2.0
"""
USAGE = """
vllm:kv_cache_usage_perc{engine="0",model_name="m-a",pid="41"} 0.0
vllm:kv_cache_usage_perc{engine="0",model_name="m-a",pid="43"} 0.42
vllm:kv_cache_usage_perc{engine="0",model_name="m-a",pid="47"} 0.0
"""


def _read(text: str) -> QueuePage:
    return read_queue_page(text.encode(), PAGE_NAMES[BackendType.VLLM], "m-a")


def test_processes_of_one_engine_count_once() -> None:
    """The greatest figure is the engine's: 5 waiting, 2 running, 42 % of the cache."""
    reading = _read(QUEUES + USAGE).reading
    assert reading is not None
    assert (reading.waiting, reading.running, reading.kv_usage) == (5.0, 2.0, 0.42)


@pytest.mark.parametrize(("ratio", "usage", "errors"), [("1.0", 1.0, 0), ("42", 0.42, 1), ("-0.1", 0.42, 1)])
def test_a_ratio_outside_0_to_1_is_discarded(ratio: str, usage: float, errors: int) -> None:
    """It is an error to be seen; the processes with a good ratio stay."""
    page = _read(QUEUES + USAGE + f'vllm:kv_cache_usage_perc{{engine="0",model_name="m-a",pid="51"}} {ratio}\n')
    assert page.reading is not None
    assert (page.reading.kv_usage, page.errors) == (usage, errors)
