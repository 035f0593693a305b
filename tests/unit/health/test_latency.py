"""Percentiles of the time to first token."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_ext.health.latency import WINDOW, TtftWindow
from router_ext.model.snapshot import NO_SAMPLES, TtftStats


def _window(*times_s: float) -> TtftWindow:
    """A window with these times, one a second from 1001 s on."""
    window = TtftWindow()
    for at, ttft_s in enumerate(times_s):
        window.add(ttft_s, 1001.0 + at)
    return window


def _seconds(count: int) -> list[float]:
    """1 s, 2 s, 3 s … in an order that is neither ascending nor descending."""
    ascending = [float(number) for number in range(1, count + 1)]
    return ascending[::2] + ascending[1::2][::-1]


def test_an_empty_window_says_nothing() -> None:
    """Neither zero nor infinity, and no error."""
    assert TtftWindow().stats == NO_SAMPLES


@pytest.mark.parametrize(
    ("count", "p50_ms", "p95_ms"),
    [
        (1, 1_000.0, 1_000.0),
        (2, 1_000.0, 2_000.0),
        (19, 10_000.0, 19_000.0),
        (20, 10_000.0, 19_000.0),
        (21, 11_000.0, 20_000.0),
        (100, 50_000.0, 95_000.0),
    ],
)
def test_percentiles_are_those_of_the_nearest_rank(count: int, p50_ms: float, p95_ms: float) -> None:
    """The value at position ceil(p * n): 19 of 19 and of 20, 20 of 21 for the 95th."""
    assert _window(*_seconds(count)).stats == TtftStats(count, 1000.0 + count, p50_ms, p95_ms)


def test_the_sample_after_a_full_window_drops_the_oldest() -> None:
    """1 s to 100 s, then 200 s: 2 s to 100 s and 200 s are left."""
    window = _window(*(float(number) for number in range(1, 101)), 200.0)
    assert window.stats == TtftStats(100, 1101.0, 51_000.0, 96_000.0)


def test_the_oldest_is_not_the_smallest() -> None:
    """100 s down to 1 s, then 0.5 s: the 100 s are gone."""
    window = _window(*(float(number) for number in range(100, 0, -1)), 0.5)
    assert window.stats == TtftStats(100, 1101.0, 49_000.0, 94_000.0)


def test_a_backend_that_became_fast_is_fast_after_a_whole_window() -> None:
    """The value at position 95 of 100 is slow while six slow ones are left, and fast with five."""
    slow = [9.0] * 100
    assert _window(*slow, *[1.0] * 94).stats.p95_ms == 9_000.0
    assert _window(*slow, *[1.0] * 95).stats.p95_ms == 1_000.0


def test_a_time_of_zero_is_a_time() -> None:
    """A clock may not move between two looks."""
    assert _window(0.0).stats == TtftStats(1, 1001.0, 0.0, 0.0)


@pytest.mark.parametrize("ttft_s", [-0.001, float("nan"), float("inf"), float("-inf")])
def test_what_is_no_time_is_an_error_and_changes_nothing(ttft_s: float) -> None:
    """It would spoil the order, which every later percentile depends on."""
    window = _window(1.0, 2.0)
    before = window.stats
    with pytest.raises(ValueError, match="no time to a first token"):
        window.add(ttft_s, 1005.0)
    assert window.stats is before


def test_stats_that_were_handed_out_do_not_change() -> None:
    """A snapshot stays what it was while a decision is made."""
    window = _window(1.0)
    before = window.stats
    window.add(2.0, 1002.0)
    assert before == TtftStats(1, 1001.0, 1_000.0, 1_000.0)


@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=3 * WINDOW))
def test_a_percentile_has_enough_samples_below_it_and_no_more(times_s: list[float]) -> None:
    """The smallest measured time that at least this share of the window does not exceed."""
    stats, kept = _window(*times_s).stats, [time * 1000 for time in times_s[-WINDOW:]]
    for percent, value in ((50, stats.p50_ms), (95, stats.p95_ms)):
        assert sum(time <= value for time in kept) * 100 >= percent * len(kept)
        assert sum(time < value for time in kept) * 100 < percent * len(kept)
        assert value in kept


@pytest.mark.parametrize(("samples", "telling"), [(0, False), (1, False), (9, False), (10, True), (100, True)])
def test_few_samples_tell_nothing(samples: int, telling: bool) -> None:
    """Ten do."""
    assert TtftStats(samples, 1000.0, 400.0, 900.0).is_telling(1001.0) is telling


@pytest.mark.parametrize(("now", "telling"), [(1000.0, True), (1300.0, True), (1300.25, False)])
def test_old_samples_tell_nothing(now: float, telling: bool) -> None:
    """At 300 s the newest one still counts."""
    assert TtftStats(100, 1000.0, 400.0, 900.0).is_telling(now) is telling


def test_no_samples_tell_nothing() -> None:
    """The empty window is unknown."""
    assert not NO_SAMPLES.is_telling(0.0)
