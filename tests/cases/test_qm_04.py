"""QM-04: stale metrics mean that the load is unknown, not that the backend is full."""

from router_ext.health.load import LoadHistory, QueueReading, effective_load

MAX_AGE_S = 15.0


def _load(history: LoadHistory, now: float, in_flight: int) -> float:
    """The load for routing; the requests in flight are as many as at the last scrape."""
    state = history.state(now, MAX_AGE_S)
    return effective_load(None if state is None else state.reading, in_flight, in_flight)


def test_a_backend_whose_metrics_stop_is_as_loaded_as_its_own_requests() -> None:
    """Thirty seconds of silence: known up to 15 s, then two requests in flight are all that is known of it."""
    history = LoadHistory()
    history.add(QueueReading(90.0, 10.0), 0.0)
    assert _load(history, 15.0, 2) == 100.0
    assert _load(history, 15.1, 2) == 2.0
    assert _load(history, 30.0, 0) == 0.0


def test_the_age_is_visible() -> None:
    """Also when scrapes fail."""
    history = LoadHistory()
    history.add(QueueReading(0.0, 0.0), 0.0)
    history.add(None, 20.0)
    assert history.age_s(30.0) == 30.0


def test_one_stale_backend_of_three_is_not_shut_out() -> None:
    """With nothing of its own in flight it is preferred to two that are known to be busy."""
    histories = {name: LoadHistory() for name in "abc"}
    for name, history in histories.items():
        history.add(QueueReading(3.0, 1.0), 0.0 if name == "a" else 20.0)
    assert {name: _load(history, 20.0, 0) for name, history in histories.items()} == {"a": 0.0, "b": 4.0, "c": 4.0}
