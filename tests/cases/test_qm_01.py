"""QM-01: with data parallelism the load of every engine counts."""

from router_ext.health.load import QueueReading
from router_ext.model.backend import BackendType
from router_ext.scrape.queue_page import PAGE_NAMES, read_queue_page

LINES = (
    'vllm:num_requests_waiting{engine="0",model_name="m-a"} 37.0',
    'vllm:num_requests_waiting{engine="1",model_name="m-a"} 0.0',
    'vllm:num_requests_running{engine="0",model_name="m-a"} 64.0',
    'vllm:num_requests_running{engine="1",model_name="m-a"} 3.0',
    'vllm:kv_cache_usage_perc{engine="0",model_name="m-a"} 0.9',
    'vllm:kv_cache_usage_perc{engine="1",model_name="m-a"} 0.1',
)
OTHER_MODEL = 'vllm:num_requests_waiting{engine="0",model_name="m-b"} 500.0'


def _read(lines: tuple[str, ...]) -> QueueReading | None:
    page = "# TYPE vllm:num_requests_waiting gauge\n" + "\n".join(lines) + "\n"
    return read_queue_page(page.encode(), PAGE_NAMES[BackendType.VLLM], "m-a").reading


def test_engines_are_summed_whatever_their_order() -> None:
    """37 + 0 waiting, 64 + 3 running; the fuller cache is the cache usage."""
    expected = QueueReading(waiting=37.0, running=67.0, kv_usage=0.9)
    assert _read(LINES) == expected
    assert _read(LINES[::-1]) == expected


def test_another_models_queue_does_not_count() -> None:
    """The page serves two models, the backend one of them."""
    assert _read((*LINES, OTHER_MODEL)) == QueueReading(waiting=37.0, running=67.0, kv_usage=0.9)
