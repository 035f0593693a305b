"""When a backend is taken out of rotation, and what brings it back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_ext.health.breaker import Breaker
from router_ext.model.backend import CircuitBreaker

THREE_IN_TEN = CircuitBreaker(error_threshold=3, window_s=10.0)


def _errors(breaker: Breaker, *times: float) -> list[bool]:
    """What each error says, of attempts that started the moment they failed."""
    return [breaker.error(now, now) for now in times]


def _opened(*times: float, settings: CircuitBreaker = THREE_IN_TEN) -> Breaker:
    """A breaker after these errors."""
    breaker = Breaker(settings)
    _errors(breaker, *times)
    return breaker


# Opening


def test_a_new_breaker_is_closed() -> None:
    """Nothing is known against the backend."""
    assert not Breaker(THREE_IN_TEN).is_open


def test_the_last_of_the_configured_number_of_errors_opens_it() -> None:
    """Not the one before."""
    breaker = Breaker(THREE_IN_TEN)
    assert _errors(breaker, 100.0, 101.0) == [False, False]
    assert not breaker.is_open
    assert breaker.error(102.0, 102.0)
    assert breaker.is_open


def test_a_threshold_of_one_opens_at_the_first_error() -> None:
    """The least that can be configured."""
    assert _opened(100.0, settings=CircuitBreaker(1, 10.0)).is_open


@pytest.mark.parametrize(("last", "is_open"), [(109.75, True), (110.0, False), (110.25, False)])
def test_errors_count_while_they_are_younger_than_the_window(last: float, is_open: bool) -> None:
    """An error of exactly the window's age no longer counts."""
    assert _opened(100.0, 105.0, last).is_open is is_open


def test_the_window_slides() -> None:
    """Errors that leave it make room for no others: three are within ten seconds at the fifth error only."""
    assert _errors(Breaker(THREE_IN_TEN), 100.0, 106.0, 112.0, 118.0, 121.0) == [False, False, False, False, True]


def test_errors_at_one_instant_count_each() -> None:
    """Requests that were in flight together fail together."""
    assert _errors(Breaker(THREE_IN_TEN), 100.0, 100.0, 100.0) == [False, False, True]


def test_errors_change_nothing_while_it_is_open() -> None:
    """It opens once, and the wait for its probes stays the same."""
    breaker = _opened(100.0, 101.0, 102.0)
    assert _errors(breaker, 103.0, 104.0, 105.0) == [False, False, False]
    assert (breaker.is_open, breaker.probe_delay_s(0, 30.0)) == (True, 0.0)


@given(st.lists(st.floats(0.0, 5.0), max_size=60), st.integers(1, 6))
def test_it_opens_exactly_when_enough_errors_are_in_the_window(gaps: list[float], threshold: int) -> None:
    """Whatever the times between errors."""
    breaker, times, now = Breaker(CircuitBreaker(threshold, 10.0)), list[float](), 0.0
    for gap in gaps:
        now += gap
        times.append(now)
        opens = sum(now - time < 10.0 for time in times) >= threshold
        assert breaker.error(now, now) is opens
        if opens:
            return


# Closing


def test_a_live_probe_closes_it() -> None:
    """Nothing else does, however long it takes."""
    breaker = _opened(100.0, 101.0, 102.0)
    assert not breaker.probed(5000.0, alive=False)
    assert breaker.is_open
    assert breaker.probed(5001.0, alive=True)
    assert not breaker.is_open


def test_closing_empties_the_window() -> None:
    """It takes the full number of errors again."""
    breaker = _opened(100.0, 101.0, 102.0)
    breaker.probed(103.0, alive=True)
    assert _errors(breaker, 104.0, 105.0, 106.0) == [False, False, True]


@pytest.mark.parametrize("alive", [True, False])
def test_probes_of_a_closed_breaker_change_nothing(alive: bool) -> None:
    """A health page that answers takes no errors away, and one that does not adds none."""
    breaker = _opened(100.0, 101.0)
    assert not breaker.probed(101.5, alive)
    assert not breaker.is_open
    assert breaker.error(102.0, 102.0)


def test_a_probe_of_a_closed_breaker_begins_no_generation() -> None:
    """An attempt from before it still counts."""
    breaker = _opened(100.0, 101.0)
    breaker.probed(101.5, alive=True)
    assert breaker.error(102.0, started_at=99.0)


@pytest.mark.parametrize(("started_at", "counts"), [(109.75, False), (110.0, True), (110.25, True)])
def test_errors_of_attempts_from_before_the_closing_do_not_count(started_at: float, counts: bool) -> None:
    """One that started at the moment of the closing counts."""
    breaker = _opened(100.0, 101.0, 102.0)
    breaker.probed(110.0, alive=True)
    assert [breaker.error(112.0, started_at) for _ in range(3)] == [False, False, counts]


# Other settings


def test_new_settings_keep_it_open() -> None:
    """Only a probe closes it."""
    breaker = _opened(100.0, 101.0, 102.0)
    breaker.configure(CircuitBreaker(50, 1.0))
    assert breaker.is_open


def test_new_settings_keep_the_errors() -> None:
    """A higher threshold is reached by those before and after."""
    breaker = _opened(100.0, 101.0)
    breaker.configure(CircuitBreaker(4, 10.0))
    assert _errors(breaker, 102.0, 103.0) == [False, True]


def test_a_lower_threshold_opens_at_the_next_error() -> None:
    """Not by itself: there is no news of the backend."""
    breaker = _opened(100.0, 101.0)
    breaker.configure(CircuitBreaker(1, 10.0))
    assert not breaker.is_open
    assert breaker.error(102.0, 102.0)


@pytest.mark.parametrize(("window_s", "is_open"), [(2.0, False), (2.25, True)])
def test_a_new_window_holds_for_errors_from_before(window_s: float, is_open: bool) -> None:
    """They are two seconds old at the third."""
    breaker = _opened(100.0, 100.0)
    breaker.configure(CircuitBreaker(3, window_s))
    assert breaker.error(102.0, 102.0) is is_open


def test_new_settings_keep_the_generation() -> None:
    """Errors from before the closing do not come back."""
    breaker = _opened(100.0, 101.0, 102.0)
    breaker.probed(110.0, alive=True)
    breaker.configure(CircuitBreaker(1, 10.0))
    assert not breaker.error(111.0, started_at=109.0)


# When to probe


@pytest.mark.parametrize(
    ("attempt", "delay_s"), [(0, 0.0), (1, 0.5), (2, 1.0), (3, 2.0), (6, 16.0), (7, 30.0), (8, 30.0), (100_000, 30.0)]
)
def test_probes_of_an_open_breaker_back_off(attempt: int, delay_s: float) -> None:
    """The first one at once, then from 0.5 s, doubling up to the interval."""
    assert _opened(100.0, 101.0, 102.0).probe_delay_s(attempt, 30.0) == delay_s


def test_a_short_interval_bounds_the_wait() -> None:
    """Never longer than while the backend is healthy."""
    assert [_opened(1.0, 1.0, 1.0).probe_delay_s(attempt, 0.25) for attempt in (0, 1, 5)] == [0.0, 0.25, 0.25]


def test_a_long_interval_is_reached() -> None:
    """The backoff has no bound of its own: 0.5 s doubled eleven times is 1,024 s."""
    assert [_opened(1.0, 1.0, 1.0).probe_delay_s(attempt, 3600.0) for attempt in (12, 15)] == [1024.0, 3600.0]


def _relapse(breaker: Breaker, closed_at: float, after_s: float) -> None:
    """A probe closes the breaker, and it opens again so much later."""
    breaker.probed(closed_at, alive=True)
    _errors(breaker, *[closed_at + after_s] * 3)


@pytest.mark.parametrize(("after_s", "delay_s"), [(1.0, 0.5), (60.0, 0.5), (60.25, 0.0)])
def test_a_breaker_that_opens_again_within_a_minute_waits_for_its_first_probe(after_s: float, delay_s: float) -> None:
    """The health page said that all was well. At exactly 60 s it still waits."""
    breaker = _opened(100.0, 100.0, 100.0)
    _relapse(breaker, 110.0, after_s)
    assert breaker.is_open
    assert breaker.probe_delay_s(0, 30.0) == delay_s


def test_each_relapse_doubles_the_wait_before_the_first_probe() -> None:
    """Up to the interval."""
    breaker, waits = _opened(100.0, 100.0, 100.0), list[float]()
    for at in range(9):
        waits.append(breaker.probe_delay_s(0, 30.0))
        _relapse(breaker, 200.0 + 100.0 * at, 5.0)
    assert waits == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_later_probes_after_a_relapse_wait_no_less_than_the_first() -> None:
    """The backoff goes on from there."""
    breaker = _opened(100.0, 100.0, 100.0)
    _relapse(breaker, 110.0, 5.0)
    _relapse(breaker, 120.0, 5.0)
    assert [breaker.probe_delay_s(attempt, 5.0) for attempt in range(4)] == [1.0, 2.0, 4.0, 5.0]


def test_a_late_opening_ends_the_row_of_relapses() -> None:
    """The next one is the first again."""
    breaker = _opened(100.0, 100.0, 100.0)
    waits = []
    for at, after_s in enumerate((5.0, 5.0, 61.0, 5.0)):
        _relapse(breaker, 200.0 + 100.0 * at, after_s)
        waits.append(breaker.probe_delay_s(0, 30.0))
    assert waits == [0.5, 1.0, 0.0, 0.5]
