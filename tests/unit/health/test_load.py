"""What a backend's readings say of its load and its restarts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_ext.health.load import LoadChange, LoadHistory, QueueLoad, QueueReading, effective_load

NOTHING_NEW = LoadChange(restarted=False, prompt_tokens=0.0)


def reading(start_time: float | None = None, prompt_tokens: float | None = None) -> QueueReading:
    """A page with 6 waiting and 2 running requests."""
    return QueueReading(6.0, 2.0, start_time=start_time, prompt_tokens=prompt_tokens)


def changes(*readings: QueueReading | None) -> list[LoadChange]:
    """What each reading tells, five seconds apart."""
    history = LoadHistory()
    return [history.add(item, 5.0 * index) for index, item in enumerate(readings)]


def restarts(*readings: QueueReading | None) -> list[bool]:
    """Which of the readings tell a restart."""
    return [change.restarted for change in changes(*readings)]


def test_a_backend_that_was_never_scraped_is_unknown() -> None:
    """Neither load nor age."""
    history = LoadHistory()
    assert (history.state(100.0, 15.0), history.age_s(100.0)) == (None, None)


@pytest.mark.parametrize(("now", "known"), [(100.0, True), (115.0, True), (115.1, False)])
def test_a_reading_is_known_up_to_its_greatest_age(now: float, known: bool) -> None:
    """At the limit it still counts."""
    history = LoadHistory()
    history.add(reading(), 100.0)
    assert history.state(now, 15.0) == (QueueLoad(reading(), now - 100.0) if known else None)


def test_a_failed_scrape_makes_the_load_unknown_until_the_next_good_one() -> None:
    """The age goes on from the last good page."""
    history = LoadHistory()
    history.add(reading(), 100.0)
    history.add(None, 105.0)
    assert (history.state(105.0, 15.0), history.age_s(105.0)) == (None, 5.0)
    history.add(reading(), 110.0)
    assert history.state(110.0, 15.0) == QueueLoad(reading(), 0.0)


@pytest.mark.parametrize(
    ("start_time", "restarted"), [(1000.0, False), (1001.0, False), (1001.5, True), (999.0, False), (998.5, True)]
)
def test_a_start_time_that_moves_by_more_than_a_second_is_a_restart(start_time: float, restarted: bool) -> None:
    """In either direction: the clock of a machine may be set back."""
    assert restarts(reading(1000.0), reading(start_time)) == [False, restarted]


@pytest.mark.parametrize(("tokens", "restarted"), [(500.0, False), (501.0, False), (499.0, True), (0.0, True)])
def test_a_counter_that_falls_is_a_restart(tokens: float, restarted: bool) -> None:
    """An equal one is an idle backend."""
    assert restarts(reading(None, 500.0), reading(None, tokens)) == [False, restarted]


def test_a_restart_is_told_once() -> None:
    """The next reading of the new engine is compared with the new engine's first."""
    assert restarts(reading(1000.0, 500.0), reading(2000.0, 9.0), reading(2000.0, 9.0)) == [False, True, False]


def test_a_restart_behind_failed_scrapes_is_seen() -> None:
    """An engine is away while it loads its model."""
    assert restarts(reading(1000.0, 500.0), None, None, reading(2000.0, 0.0)) == [False, False, False, True]


def test_a_page_that_lacks_a_mark_does_not_hide_a_restart() -> None:
    """The last known counter is kept."""
    assert restarts(reading(None, 500.0), reading(), reading(None, 9.0)) == [False, False, True]


def test_a_mark_that_comes_late_does_not_tell_the_restart_again() -> None:
    """The first page after the restart has no counter yet."""
    assert restarts(reading(1000.0, 500.0), reading(2000.0), reading(2000.0, 9.0)) == [False, True, False]


def test_a_page_without_marks_never_tells_a_restart() -> None:
    """Nothing can be compared."""
    assert changes(reading(), reading()) == [NOTHING_NEW, NOTHING_NEW]


def test_prompt_tokens_are_counted_from_reading_to_reading() -> None:
    """The first reading has no reading before it."""
    assert [change.prompt_tokens for change in changes(reading(None, 500.0), None, reading(None, 620.0))] == [0, 0, 120]


def test_a_new_start_time_makes_a_higher_counter_count_in_full() -> None:
    """The new engine took more than the old one ever did."""
    assert changes(reading(1000.0, 500.0), reading(2000.0, 620.0))[1] == LoadChange(True, 620.0)


@given(st.lists(st.none() | st.floats(0, 1e9)))
def test_the_growth_is_never_negative(counters: list[float | None]) -> None:
    """Whatever a counter does."""
    assert all(change.prompt_tokens >= 0 for change in changes(*(reading(None, counter) for counter in counters)))


@pytest.mark.parametrize(
    ("now", "at_scrape", "load"),
    [
        (3, 3, 8.0),
        (5, 3, 10.0),
        (1, 3, 6.0),
        (0, 8, 0.0),
        (0, 9, 0.0),
        (9, 0, 17.0),
    ],
)
def test_the_own_change_since_the_scrape_is_added(now: int, at_scrape: int, load: float) -> None:
    """Six waiting and two running requests were scraped."""
    assert effective_load(reading(), now, at_scrape) == load


def test_the_load_is_at_least_the_own_requests() -> None:
    """An engine in a long prefill shows none of the four requests that it was sent before the scrape."""
    assert effective_load(QueueReading(0.0, 0.0), 4, 4) == 4.0


def test_an_unknown_backend_counts_with_the_own_requests_alone() -> None:
    """Neither idle nor full."""
    assert effective_load(None, 4, 2) == 4.0
