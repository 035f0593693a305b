"""The learned prefill rate, and the work that a backend still has."""

import pytest

from router_ext.health.prefill import MIN_SIZE, PrefillQueue, PrefillRate


def _rate(*observed: tuple[float, float]) -> float:
    rate = PrefillRate()
    for size, seconds in observed:
        rate.observe(size, seconds)
    return rate.value


def _taught() -> PrefillQueue:
    """A queue that has learned 1,000 a second by time 100, and is empty."""
    queue = PrefillQueue()
    for i in range(3):
        _serve(queue, f"t{i}", 10_000, 60.0 + 10 * i, 70.0 + 10 * i)
    return queue


def _serve(queue: PrefillQueue, name: str, size: float, begin: float, first_token: float) -> None:
    queue.begin(name, size, begin, shows_first_token=True)
    queue.first_token(name, first_token)
    queue.end(name, first_token + 5)


def _wait(queue: PrefillQueue, now: float) -> float:
    return queue.state.wait_s(now, queue.state.rate)


# The rate


def test_a_rate_is_believed_after_three_observations() -> None:
    """Two may be chance."""
    assert _rate((2000, 1.0), (2000, 1.0)) == 0
    assert _rate((2000, 1.0), (2000, 1.0), (2000, 1.0)) == pytest.approx(2000)


def test_long_prompts_weigh_more_than_short_ones() -> None:
    """The rate is total size over total time, the newest counting a little more."""
    assert _rate((2000, 1.0), (2000, 1.0), (96_000, 12.0)) == pytest.approx(7198, abs=1)


def test_short_prompts_teach_nothing() -> None:
    """1,023 is too short, 1,024 is not."""
    assert _rate(*[(MIN_SIZE - 1, 1.0)] * 9) == 0
    assert _rate(*[(MIN_SIZE, 1.0)] * 3) == pytest.approx(1024)


@pytest.mark.parametrize("seconds", [float("nan"), float("inf")])
def test_times_that_are_no_number_teach_nothing(seconds: float) -> None:
    """The rate stays as it was."""
    assert _rate(*[(2000, 1.0)] * 3, (2000, seconds)) == pytest.approx(2000)


def test_one_wrong_observation_moves_the_rate_little() -> None:
    """A prompt that was cached after all looks a thousand times as fast; it counts as four times."""
    before = [(2000, 1.0)] * 20
    assert _rate(*before, (2000, 0.001)) == pytest.approx(2120, abs=2)
    assert _rate(*before, (2000, 1000.0)) == pytest.approx(1629, abs=2)


@pytest.mark.parametrize("factor", [10.0, 0.1])
def test_a_rate_that_changed_is_followed(factor: float) -> None:
    """After 120 prompts the old rate is forgotten, however far away the new one is."""
    observed = [(2000.0, 1.0)] * 20 + [(2000.0, 1.0 / factor)] * 120
    assert _rate(*observed) == pytest.approx(2000 * factor, rel=0.1)


# What one first token teaches


def test_the_time_in_the_queue_is_not_part_of_the_prefill() -> None:
    """Three prompts arrive at once and take a second each: the third one's first token comes after three."""
    queue = PrefillQueue()
    for name in "abc":
        queue.begin(name, 2000, 10.0, shows_first_token=True)
    for i, name in enumerate("abc"):
        queue.first_token(name, 11.0 + i)
        queue.end(name, 20.0)
    assert queue.state.rate == pytest.approx(2000)


def test_what_the_engine_reports_counts_instead_of_what_was_expected() -> None:
    """Expected were 2,000, of which 4,000 were not cached after all."""
    queue = PrefillQueue()
    for i in range(3):
        queue.begin(f"r{i}", 2000, 10.0 * i, shows_first_token=True)
        queue.first_token(f"r{i}", 10.0 * i + 2)
        queue.end(f"r{i}", 10.0 * i + 5, prefilled=4000)
    assert queue.state.rate == pytest.approx(2000)


def test_a_request_without_a_first_token_teaches_nothing() -> None:
    """It failed, or it was not streamed."""
    queue = PrefillQueue()
    for i in range(9):
        queue.begin(f"r{i}", 2000, 10.0 * i, shows_first_token=i % 2 == 0)
        queue.end(f"r{i}", 10.0 * i + 1)
    assert (queue.state.rate, queue.state.queued) == (0, 0)


# The work


def test_work_counts_from_the_moment_of_the_decision() -> None:
    """Two prompts of 10,000 at 1,000 a second are 20 seconds of work."""
    queue = _taught()
    queue.begin("a", 10_000, 100.0, shows_first_token=True)
    assert _wait(queue, 100.0) == pytest.approx(10)
    queue.begin("b", 10_000, 100.0, shows_first_token=True)
    assert _wait(queue, 100.0) == pytest.approx(20)
    assert queue.state.queued == 20_000


def test_work_is_done_as_time_passes() -> None:
    """Four seconds later a prompt of 10,000 has six left."""
    queue = _taught()
    queue.begin("a", 10_000, 100.0, shows_first_token=True)
    assert _wait(queue, 104.0) == pytest.approx(6)


def test_an_overdue_request_takes_no_time_but_hides_none_of_those_behind_it() -> None:
    """The first of three should have been done at 110 and the third at 130; at 200 two are still to be done."""
    queue = _taught()
    for name in "abc":
        queue.begin(name, 10_000, 100.0, shows_first_token=True)
    assert _wait(queue, 200.0) == pytest.approx(20)


def test_a_first_token_puts_the_estimate_right() -> None:
    """The first of two was cached after all: what is left begins now."""
    queue = _taught()
    queue.begin("a", 10_000, 100.0, shows_first_token=True)
    queue.begin("b", 5_000, 100.0, shows_first_token=True)
    queue.first_token("a", 101.0)
    assert _wait(queue, 101.0) == pytest.approx(5)
    queue.first_token("b", 106.0)
    assert (_wait(queue, 106.0), queue.state.queued) == (0, 0)


def test_a_request_that_failed_is_no_work_any_more() -> None:
    """What is behind it moves up."""
    queue = _taught()
    queue.begin("a", 10_000, 100.0, shows_first_token=True)
    queue.begin("b", 5_000, 100.0, shows_first_token=True)
    queue.end("a", 100.0)
    assert _wait(queue, 100.0) == pytest.approx(5)


def test_a_request_that_shows_no_first_token_is_work_until_it_should_be_done() -> None:
    """Its answer ends much later, which says nothing of its prefill."""
    queue = _taught()
    queue.begin("a", 10_000, 100.0, shows_first_token=False)
    assert _wait(queue, 104.0) == pytest.approx(6)
    assert _wait(queue, 110.0) == 0
    queue.begin("b", 5_000, 111.0, shows_first_token=True)
    assert queue.state.queued == 5_000
    assert _wait(queue, 111.0) == pytest.approx(5)
    queue.end("a", 160.0)
    assert queue.state.queued == 5_000


def test_without_a_rate_the_work_is_known_but_not_its_time() -> None:
    """Another backend's rate stands in."""
    queue = PrefillQueue()
    queue.begin("a", 10_000, 100.0, shows_first_token=True)
    assert queue.state.rate == 0
    assert queue.state.wait_s(104.0, 2_000.0) == pytest.approx(5)


def test_the_rate_may_become_known_while_there_is_work() -> None:
    """The work counts in seconds from then on."""
    queue = PrefillQueue()
    for i in range(3):
        queue.begin(f"t{i}", 10_000, 10.0 * i, shows_first_token=True)
        queue.first_token(f"t{i}", 10.0 * i + 10)
    queue.begin("a", 5_000, 30.0, shows_first_token=True)
    for i in range(3):
        queue.end(f"t{i}", 31.0)
    assert _wait(queue, 31.0) == pytest.approx(5)


@pytest.mark.parametrize("event", ["first_token", "end"])
def test_events_of_unknown_requests_change_nothing(event: str) -> None:
    """They may come twice, or after the backend was configured anew."""
    queue = _taught()
    queue.begin("a", 10_000, 100.0, shows_first_token=True)
    before = queue.state
    getattr(queue, event)("never begun", 105.0)
    assert queue.state == before
