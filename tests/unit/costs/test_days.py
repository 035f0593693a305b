"""Calendar days of a zone: where they begin and end, what follows from that, and periods of them."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from router_ext.costs.days import Dates, Day, Period, day_at, day_of


def at(text: str) -> int:
    """Seconds since the epoch at a time of UTC, like ``2026-03-10T12:00:00``."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


DAYS = [
    ("UTC", date(2026, 3, 10), "2026-03-10T00:00:00", "2026-03-11T00:00:00", 24),
    ("Asia/Kolkata", date(2026, 3, 10), "2026-03-09T18:30:00", "2026-03-10T18:30:00", 24),
    ("Europe/Berlin", date(2026, 3, 29), "2026-03-28T23:00:00", "2026-03-29T22:00:00", 23),
    ("Europe/Berlin", date(2026, 10, 25), "2026-10-24T22:00:00", "2026-10-25T23:00:00", 25),
    ("Australia/Lord_Howe", date(2026, 4, 5), "2026-04-04T13:00:00", "2026-04-05T13:30:00", 24.5),
    # No midnight: from 24:00 it is 01:00.
    ("America/Santiago", date(2026, 9, 6), "2026-09-06T04:00:00", "2026-09-07T03:00:00", 23),
    # The hour before midnight comes twice, midnight itself once.
    ("America/Santiago", date(2026, 4, 4), "2026-04-04T03:00:00", "2026-04-05T04:00:00", 25),
    # Two midnights: at 01:00 it is 00:00 again. The first one counts.
    ("America/Havana", date(2026, 11, 1), "2026-11-01T04:00:00", "2026-11-02T05:00:00", 25),
    # At 00:01 it is 23:01 of the day before again, but that day is over.
    ("America/Goose_Bay", date(2010, 11, 6), "2010-11-06T03:00:00", "2010-11-07T03:00:00", 24),
    ("America/Goose_Bay", date(2010, 11, 7), "2010-11-07T03:00:00", "2010-11-08T04:00:00", 25),
    # From 23:30 it is 00:30 of the next day.
    ("America/Toronto", date(1919, 3, 30), "1919-03-30T05:00:00", "1919-03-31T04:30:00", 23.5),
    ("America/Toronto", date(1919, 3, 31), "1919-03-31T04:30:00", "1919-04-01T04:00:00", 23.5),
]
"""Zone, date, the UTC times of the first instant and the next day's first one, and hours."""


@pytest.mark.parametrize(("zone", "when", "begin", "end", "hours"), DAYS)
def test_a_day_goes_from_midnight_to_midnight_of_its_zone(
    zone: str, when: date, begin: str, end: str, hours: float
) -> None:
    """By whatever offset and however long."""
    day = day_of(when, ZoneInfo(zone))
    assert day == Day(when, at(begin), at(end))
    assert day.length_s == hours * 3600


@pytest.mark.parametrize(("zone", "when", "begin", "end", "_hours"), DAYS)
def test_the_first_instant_belongs_to_a_day_and_the_last_one_to_the_next(
    zone: str, when: date, begin: str, end: str, _hours: float
) -> None:
    """A millionth of a second before its begin it is the day before."""
    place = ZoneInfo(zone)
    dates = [day_at(now, place).date for now in (at(begin) - 1e-6, at(begin), at(end) - 1e-6, at(end))]
    assert dates == [date.fromordinal(when.toordinal() + days) for days in (-1, 0, 0, 1)]


def test_the_day_of_santiago_without_a_midnight_begins_at_one_o_clock() -> None:
    """As its clocks show it."""
    place = ZoneInfo("America/Santiago")
    begin = datetime.fromtimestamp(day_of(date(2026, 9, 6), place).begin_s, place)
    assert begin.isoformat() == "2026-09-06T01:00:00-03:00"


def test_clocks_that_go_back_over_midnight_do_not_bring_yesterday_back() -> None:
    """At 00:01 of 2010-11-07 it was 23:01 of 2010-11-06 again in Goose Bay: the new day goes on."""
    place, changed = ZoneInfo("America/Goose_Bay"), at("2010-11-07T03:01:00")
    assert datetime.fromtimestamp(changed, place).date() == date(2010, 11, 6)
    assert [day_at(changed + after, place).date.day for after in (-60.5, -60, -1, 0, 3599)] == [6, 7, 7, 7, 7]


def test_a_date_that_was_left_out_has_no_length() -> None:
    """Samoa went from the end of 2011-12-29 to 2011-12-31."""
    place, changed = ZoneInfo("Pacific/Apia"), at("2011-12-30T10:00:00")
    assert day_of(date(2011, 12, 30), place) == Day(date(2011, 12, 30), changed, changed)
    assert [day_at(changed + after, place).date.day for after in (-1, 0)] == [29, 31]


def test_seconds_since_midnight_are_real_ones() -> None:
    """At 06:00 in Berlin five hours have passed when the clocks went forward, and seven when they went back."""
    place = ZoneInfo("Europe/Berlin")
    for now, hours in (("2026-03-29T04:00:00", 5), ("2026-10-25T05:00:00", 7), ("2026-06-01T04:00:00", 6)):
        assert day_at(at(now), place).elapsed_s(at(now)) == hours * 3600


@pytest.mark.parametrize(
    ("before_s", "seconds"), [(86_400, 86_400), (86_399.5, 86_400), (2, 2), (1.5, 2), (1, 1), (0.001, 1)]
)
def test_the_wait_for_midnight_is_whole_seconds_rounded_up(before_s: float, seconds: int) -> None:
    """Who waits that long comes on the next day, and nobody is told to wait for 0 seconds."""
    now = at("2026-03-11T00:00:00") - before_s
    assert day_at(now, ZoneInfo("UTC")).ends_in_s(now) == seconds


def test_the_wait_for_midnight_knows_how_long_the_day_is() -> None:
    """At 01:30 in Berlin, before the clocks change, it is 21.5 or 23.5 hours."""
    place = ZoneInfo("Europe/Berlin")
    for now, hours in (("2026-03-29T00:30:00", 21.5), ("2026-10-24T23:30:00", 23.5)):
        assert day_at(at(now), place).ends_in_s(at(now)) == hours * 3600


@pytest.mark.parametrize(
    ("period", "today", "first"),
    [
        (Period.TODAY, date(2026, 3, 11), date(2026, 3, 11)),
        # Sunday, Monday and Wednesday.
        (Period.WEEK, date(2026, 3, 8), date(2026, 3, 2)),
        (Period.WEEK, date(2026, 3, 9), date(2026, 3, 9)),
        (Period.WEEK, date(2026, 3, 11), date(2026, 3, 9)),
        (Period.WEEK, date(2026, 1, 1), date(2025, 12, 29)),
        (Period.MONTH, date(2026, 3, 1), date(2026, 3, 1)),
        (Period.MONTH, date(2026, 3, 31), date(2026, 3, 1)),
        (Period.MONTH, date(2028, 2, 29), date(2028, 2, 1)),
    ],
)
def test_a_period_ends_today(period: Period, today: date, first: date) -> None:
    """A week begins on Monday, also in the year before, and a month on its first."""
    assert period.dates(today) == Dates(first, today)


def test_periods_are_the_words_of_the_api() -> None:
    """Another word is none."""
    assert [Period("today"), Period("week"), Period("month")] == list(Period)
    with pytest.raises(ValueError, match="year"):
        Period("year")


def test_both_ends_belong_to_a_range_of_dates() -> None:
    """And the days beside them do not."""
    dates = Dates(date(2026, 3, 2), date(2026, 3, 4))
    assert [date(2026, 3, day) in dates for day in (1, 2, 3, 4, 5)] == [False, True, True, True, False]
