"""Days of any zone of the database: a partition of time, from 1970 on, also after the last change it knows of."""

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import given
from hypothesis import strategies as st

from router_ext.costs.days import day_at, day_of

ZONES = st.sampled_from(sorted(available_timezones())).map(ZoneInfo)
INSTANTS = st.floats(0, 4_102_444_800)
"""From 1970 to 2099."""

SUMMER_TIME = ("Europe/Berlin", "America/New_York", "America/Santiago", "America/Havana", "Africa/Cairo", "Asia/Beirut")
"""Zones that put their clocks by an hour, some of them over midnight."""

ONE_DAY = timedelta(days=1)


@given(ZONES, INSTANTS)
def test_each_instant_belongs_to_exactly_one_day(zone: ZoneInfo, now: float) -> None:
    """To the one that is found, and not to those beside it, which begin where it ends and end where it begins."""
    day = day_at(now, zone)
    before, after = day_of(day.date - ONE_DAY, zone), day_of(day.date + ONE_DAY, zone)
    assert [now in each for each in (before, day, after)] == [False, True, False]
    assert (before.end_s, after.begin_s) == (day.begin_s, day.end_s)


@given(ZONES, INSTANTS)
def test_a_day_is_found_again_by_its_date(zone: ZoneInfo, now: float) -> None:
    """And by its first and its last second."""
    day = day_at(now, zone)
    assert day_of(day.date, zone) == day_at(day.begin_s, zone) == day_at(day.end_s - 1, zone) == day


@given(ZONES, INSTANTS, INSTANTS)
def test_days_never_go_back(zone: ZoneInfo, one: float, other: float) -> None:
    """A later instant has the same date or a later one."""
    assert day_at(min(one, other), zone).date <= day_at(max(one, other), zone).date


@given(ZONES, INSTANTS)
def test_the_date_is_what_the_clocks_show(zone: ZoneInfo, now: float) -> None:
    """Except where they were put back over midnight: then the day goes on that they have shown before."""
    day, shown = day_at(now, zone), datetime.fromtimestamp(int(now), zone).date()
    assert shown in (day.date, day.date - ONE_DAY)
    if shown != day.date:
        assert datetime.fromtimestamp(day.begin_s, zone).date() == day.date


@given(ZONES, st.dates(date(1970, 1, 2), date(2099, 12, 31)))
def test_a_day_begins_when_the_clocks_first_show_its_date(zone: ZoneInfo, when: date) -> None:
    """A second before they show an earlier one."""
    begin_s = day_of(when, zone).begin_s
    assert datetime.fromtimestamp(begin_s - 1, zone).date() < when <= datetime.fromtimestamp(begin_s, zone).date()


@given(st.sampled_from(SUMMER_TIME).map(ZoneInfo), st.integers(2024, 2037))
def test_a_year_with_summer_time_has_one_day_of_23_hours_and_one_of_25(zone: ZoneInfo, year: int) -> None:
    """All others have 24, and together they have the hours of the year."""
    dates = [date(year, 1, 1) + days * ONE_DAY for days in range(366 if year % 4 == 0 else 365)]
    hours = [day_of(each, zone).length_s / 3600 for each in dates]
    assert sorted(hours) == [23.0, *[24.0] * (len(dates) - 2), 25.0]


@given(ZONES, st.integers(0, 4 * 4_102_444_800))
def test_the_wait_for_midnight_ends_on_the_next_day_and_a_second_less_does_not(zone: ZoneInfo, quarters: int) -> None:
    """At each quarter of a second; it is never 0."""
    now = quarters / 4
    day = day_at(now, zone)
    wait_s = day.ends_in_s(now)
    assert wait_s >= 1
    assert day_at(now + wait_s, zone).begin_s == day.end_s
    assert day_at(now + wait_s - 1, zone) == day
