"""QM-11: metrics that may be absent are no failure."""

from router_ext.health.load import LoadChange, LoadHistory, QueueLoad, QueueReading
from router_ext.model.backend import BackendType
from router_ext.scrape.queue_page import PAGE_NAMES, QueuePage, read_queue_page

PAGE = b'vllm:num_requests_waiting{engine="0",model_name="m-a"} 1.0\n'


def test_one_queue_alone_is_a_reading_without_errors() -> None:
    """One waits; cache usage, start time and counters are unknown, again and again."""
    history = LoadHistory()
    for now in (0.0, 5.0):
        page = read_queue_page(PAGE, PAGE_NAMES[BackendType.VLLM], "m-a")
        assert page == QueuePage(QueueReading(waiting=1.0, running=0.0), errors=0)
        assert history.add(page.reading, now) == LoadChange(restarted=False, prompt_tokens=0.0)
        assert history.state(now, 15.0) == QueueLoad(QueueReading(waiting=1.0, running=0.0), 0.0)
