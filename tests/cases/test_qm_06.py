"""QM-06: NaN and infinity are legal sample values that say nothing."""

import itertools

from router_ext.health.load import QueueReading, effective_load
from router_ext.model.backend import BackendType
from router_ext.scrape.queue_page import PAGE_NAMES, QueuePage, read_queue_page

WAITING = 'vllm:num_requests_waiting{engine="0",model_name="m-a"} NaN\n'
RUNNING = 'vllm:num_requests_running{engine="0",model_name="m-a"} +Inf\n'
USAGE = 'vllm:kv_cache_usage_perc{engine="0",model_name="m-a"} 3.1e-05\n'
GOOD = 'vllm:num_requests_running{engine="0",model_name="m-a"} 4e0\n'


def _read(text: str) -> QueuePage:
    return read_queue_page(text.encode(), PAGE_NAMES[BackendType.VLLM], "m-a")


def test_a_page_whose_queues_are_not_finite_is_unknown() -> None:
    """Not an error and not load 0."""
    assert _read(WAITING + RUNNING + USAGE) == QueuePage(None, 0)


def test_exponents_are_numbers_beside_a_value_that_is_not_known() -> None:
    """3.1e-05 of the cache; the queue that is known is used."""
    assert _read(WAITING + GOOD + USAGE) == QueuePage(QueueReading(0.0, 4.0, 3.1e-05), 0)


def test_the_least_loaded_backend_does_not_depend_on_the_order() -> None:
    """Every load is comparable: the one with NaN counts with its 2 own requests, less than 4 and 6."""
    pages = {"nan": WAITING + RUNNING, "four": GOOD, "six": GOOD + 'vllm:num_requests_waiting{engine="0"} 2\n'}
    loads = {name: effective_load(_read(page).reading, 2, 2) for name, page in pages.items()}
    assert loads == {"nan": 2.0, "four": 4.0, "six": 6.0}
    assert {min(order, key=loads.__getitem__) for order in itertools.permutations(loads)} == {"nan"}
