"""QM-15: a restart resets counters; no rate may go below zero."""

from router_ext.health.load import LoadChange, LoadHistory
from router_ext.model.backend import BackendType
from router_ext.scrape.queue_page import PAGE_NAMES, read_queue_page


def _add(history: LoadHistory, prompt_tokens: int, now: float) -> LoadChange:
    page = f"vllm:num_requests_waiting 0\nvllm:prompt_tokens_total {prompt_tokens}\n"
    return history.add(read_queue_page(page.encode(), PAGE_NAMES[BackendType.VLLM]).reading, now)


def test_a_fall_is_a_restart_and_the_new_value_is_the_increase() -> None:
    """1,000,000 prompt tokens, a restart, 120 since; the next reading counts from those."""
    history = LoadHistory()
    assert _add(history, 1_000_000, 0.0) == LoadChange(restarted=False, prompt_tokens=0.0)
    assert _add(history, 120, 5.0) == LoadChange(restarted=True, prompt_tokens=120.0)
    assert _add(history, 150, 10.0) == LoadChange(restarted=False, prompt_tokens=30.0)
