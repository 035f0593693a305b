"""QM-10: the cache usage changed its name between versions of vLLM."""

import pytest

from router_ext.model.backend import BackendType
from router_ext.scrape.queue_page import PAGE_NAMES, PageNames, read_queue_page

QUEUE = 'vllm:num_requests_waiting{engine="0",model_name="m-a"} 1.0\n'
OLD = 'vllm:gpu_cache_usage_perc{model_name="m-a"} 0.91\n'
NEW = 'vllm:kv_cache_usage_perc{engine="0",model_name="m-a"} 0.12\n'
SAME_BY_OLD_NAME = 'vllm:gpu_cache_usage_perc{engine="0",model_name="m-a"} 0.12\n'


def _usage(text: str, names: PageNames = PAGE_NAMES[BackendType.VLLM]) -> float | None:
    reading = read_queue_page(text.encode(), names, "m-a").reading
    assert reading is not None
    return reading.kv_usage


@pytest.mark.parametrize(
    ("page", "usage"), [(OLD, 0.91), (NEW, 0.12), (NEW + SAME_BY_OLD_NAME, 0.12), (SAME_BY_OLD_NAME + NEW, 0.12)]
)
def test_both_names_are_understood_and_count_once(page: str, usage: float) -> None:
    """An old backend, a new one, and one that shows both."""
    assert _usage(QUEUE + page) == usage


def test_the_names_are_data() -> None:
    """A name that a later version brings is one entry of a table."""
    names = PageNames(
        waiting="vllm:num_requests_waiting",
        running="vllm:num_requests_running",
        kv_usage=("vllm:cache_fill",),
        prompt_tokens="vllm:prompt_tokens_total",
    )
    assert _usage(QUEUE + NEW + "vllm:cache_fill 0.5\n", names) == 0.5
