"""Forecasts of a day's spending, against values computed by hand."""

import json
import math
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from router_ext.costs.forecast import Forecast, as_json, forecast

DOLLAR = 1_000_000
LARGEST = 2**53 - 1
"""Micro-dollars: nine billion dollars, more than any counter holds."""


def at(text: str) -> float:
    """Seconds since the epoch at a time with an offset, like ``2026-03-10T12:00:00+05:30``."""
    return datetime.fromisoformat(text).timestamp()


def told(now: str, spent_usd: int, limit_usd: int | None, last_hour_usd: int = 0, zone: str = "UTC") -> Forecast:
    """A forecast for whole dollars."""
    limit = None if limit_usd is None else limit_usd * DOLLAR
    return forecast(spent_usd * DOLLAR, limit, last_hour_usd * DOLLAR, at(now), ZoneInfo(zone))


def exhausted(told: Forecast) -> str | None:
    """When, as text."""
    return None if told.exhaustion_time is None else told.exhaustion_time.isoformat()


# Linear from midnight


def test_a_quarter_of_the_budget_in_a_quarter_of_the_day_lasts_to_its_end() -> None:
    """25 of 100 dollars at 06:00."""
    quarter = told("2026-03-10T06:00:00Z", 25, 100)
    assert quarter.projected_daily == 100 * DOLLAR
    assert exhausted(quarter) == "2026-03-11T00:00:00+00:00"


def test_half_of_the_budget_in_a_tenth_of_the_day_ends_before_noon() -> None:
    """50 of 100 dollars at 02:24: the other half lasts as long, until 04:48."""
    burst = told("2026-03-10T02:24:00Z", 50, 100)
    assert burst.projected_daily == 500 * DOLLAR
    assert exhausted(burst) == "2026-03-10T04:48:00+00:00"


def test_where_nothing_is_spent_nothing_ends() -> None:
    """All day."""
    for now in ("2026-03-10T00:00:00Z", "2026-03-10T12:00:00Z", "2026-03-10T23:59:59Z"):
        assert told(now, 0, 100) == Forecast(0, 0, 0, 0, 0, None)


def test_without_a_budget_there_is_a_projection_only() -> None:
    """10 dollars at 06:00 are 40 a day."""
    free = told("2026-03-10T06:00:00Z", 10, None)
    assert (free.projected_daily, free.exhaustion_time) == (40 * DOLLAR, None)


def test_a_budget_that_lasts_longer_than_the_day_does_not_end() -> None:
    """At the next midnight it still does; a micro-dollar more, and it is after today."""
    now, zone = at("2026-03-10T06:00:00Z"), ZoneInfo("UTC")
    assert exhausted(forecast(25 * DOLLAR, 100 * DOLLAR, 0, now, zone)) == "2026-03-11T00:00:00+00:00"
    assert forecast(25 * DOLLAR, 100 * DOLLAR + 1, 0, now, zone).exhaustion_time is None


def test_a_budget_that_is_exhausted_says_when_it_was() -> None:
    """At the rate since midnight: 50 dollars at noon were 25 at 06:00. Exactly reached, it is now."""
    assert exhausted(told("2026-03-10T12:00:00Z", 50, 25)) == "2026-03-10T06:00:00+00:00"
    assert exhausted(told("2026-03-10T12:00:00Z", 50, 50)) == "2026-03-10T12:00:00+00:00"


def test_times_are_rounded_down_to_seconds() -> None:
    """10 of 14 dollars at 00:00:05 end at 00:00:07; of 15 at 7.5 s; of 16 at 00:00:08."""
    times = [exhausted(told("2026-03-10T00:00:05Z", 10, limit)) for limit in (14, 15, 16)]
    assert times == [f"2026-03-10T00:00:0{second}+00:00" for second in (7, 7, 8)]


# The first second


@pytest.mark.parametrize("fraction", ["00.000", "00.001", "00.999"])
def test_in_the_first_second_spending_projects_to_itself(fraction: str) -> None:
    """It has no rate yet, and a budget that is not reached does not end."""
    now, zone = at(f"2026-12-01T00:00:{fraction}Z"), ZoneInfo("UTC")
    assert forecast(20_000, 1_000_000, 0, now, zone) == Forecast(20_000, 20_000, 20_000, 20_000, 0, None)


def test_after_a_second_spending_has_a_rate() -> None:
    """Two cents a second are 1,728 dollars a day, and end a budget of a dollar after 50 seconds."""
    early = forecast(20_000, 1_000_000, 0, at("2026-12-01T00:00:01Z"), ZoneInfo("UTC"))
    assert early.projected_daily == 1_728 * DOLLAR
    assert exhausted(early) == "2026-12-01T00:00:50+00:00"


@pytest.mark.parametrize(("spent", "ends"), [(999_999, False), (1_000_000, True), (3_000_000, True)])
def test_a_budget_can_be_reached_in_the_first_second(spent: int, ends: bool) -> None:
    """Then it is exhausted at midnight."""
    first = forecast(spent, 1_000_000, 0, at("2026-12-01T00:00:00.25Z"), ZoneInfo("UTC"))
    assert exhausted(first) == ("2026-12-01T00:00:00+00:00" if ends else None)


# The last hour


@pytest.mark.parametrize(
    ("last_hour_usd", "low_usd", "high_usd"),
    [(3, 24, 60), (1, 24, 24), (0, 6, 24)],
)
def test_the_rest_of_the_day_at_the_last_hours_rate_is_the_other_bound(
    last_hour_usd: int, low_usd: int, high_usd: int
) -> None:
    """6 dollars at 06:00: one an hour is 24 a day; three an hour from now on are 6 + 18 * 3, none is 6."""
    six = told("2026-03-10T06:00:00Z", 6, None, last_hour_usd)
    assert six == Forecast(
        spent_today=6 * DOLLAR,
        projected_daily=24 * DOLLAR,
        projected_daily_low=low_usd * DOLLAR,
        projected_daily_high=high_usd * DOLLAR,
        rate_last_hour=last_hour_usd * DOLLAR,
        exhaustion_time=None,
    )


def test_the_last_hour_may_have_been_yesterday() -> None:
    """At midnight nothing is spent, and a dollar an hour would be 24 a day."""
    assert told("2026-03-10T00:00:00Z", 0, 10, 1) == Forecast(0, 0, 0, 24 * DOLLAR, DOLLAR, None)


# Zones


def test_a_day_of_23_hours_projects_to_23() -> None:
    """Berlin at 06:00, five hours after midnight: 10 dollars are two an hour, and 20 of them last until 11:00."""
    short = told("2026-03-29T06:00:00+02:00", 10, 20, 2, "Europe/Berlin")
    assert [short.projected_daily, short.projected_daily_low, short.projected_daily_high] == [46 * DOLLAR] * 3
    assert exhausted(short) == "2026-03-29T11:00:00+02:00"


def test_a_day_of_25_hours_projects_to_25() -> None:
    """Berlin at 04:00, five hours after midnight: 50 dollars last to the end, in winter time, and 51 longer."""
    long = told("2026-10-25T04:00:00+01:00", 10, 50, 2, "Europe/Berlin")
    assert [long.projected_daily, long.projected_daily_low, long.projected_daily_high] == [50 * DOLLAR] * 3
    assert exhausted(long) == "2026-10-26T00:00:00+01:00"
    assert told("2026-10-25T04:00:00+01:00", 10, 51, 2, "Europe/Berlin").exhaustion_time is None


def test_the_hour_that_comes_twice_is_told_apart_by_its_offset() -> None:
    """10 dollars at 01:00: 25 of them last until 02:30 before the clocks change, 35 until 02:30 after it."""
    times = [exhausted(told("2026-10-25T01:00:00+02:00", 10, limit, zone="Europe/Berlin")) for limit in (25, 35)]
    assert times == ["2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00"]


def test_a_day_without_a_midnight_counts_from_its_first_instant() -> None:
    """Santiago at 02:00 is an hour after the beginning: a dollar is 23 a day, and 5 of them last until 06:00."""
    santiago = told("2026-09-06T02:00:00-03:00", 1, 5, zone="America/Santiago")
    assert santiago.projected_daily == 23 * DOLLAR
    assert exhausted(santiago) == "2026-09-06T06:00:00-03:00"


def test_a_zone_with_a_half_hour_counts_from_its_own_midnight() -> None:
    """Kolkata at 06:00, which is 00:30 in London: a quarter of the day."""
    quarter = told("2026-03-10T06:00:00+05:30", 25, 100, zone="Asia/Kolkata")
    assert quarter.projected_daily == 100 * DOLLAR
    assert exhausted(quarter) == "2026-03-11T00:00:00+05:30"


# JSON


def test_the_json_form_has_dollars_and_times_of_the_zone() -> None:
    """A third of a dollar is rounded to the micro-dollar."""
    made = forecast(333_333, 2_500_000, 1_000_000, at("2026-03-10T08:00:00+05:30"), ZoneInfo("Asia/Kolkata"))
    assert as_json("shop", 2_500_000, made) == {
        "service": "shop",
        "spent_today": 0.333333,
        "projected_daily": 0.999999,
        "projected_daily_low": 0.999999,
        "projected_daily_high": 16.333333,
        "rate_last_hour": 1.0,
        "budget": 2.5,
        "exhaustion_time": None,
    }
    soon = forecast(2_000_000, 2_500_000, 0, at("2026-03-10T08:00:00+05:30"), ZoneInfo("Asia/Kolkata"))
    assert as_json("shop", 2_500_000, soon)["exhaustion_time"] == "2026-03-10T10:00:00+05:30"


def test_no_budget_is_null_in_json() -> None:
    """And so is the time that it would end."""
    made = as_json("shop", None, told("2026-03-10T06:00:00Z", 1, None))
    assert (made["budget"], made["exhaustion_time"]) == (None, None)


@pytest.mark.parametrize("now", ["00:00:00", "00:00:00.000001", "00:00:01", "12:00:00", "23:59:59.999999"])
@pytest.mark.parametrize("spent", [0, 1, LARGEST])
@pytest.mark.parametrize("limit", [None, 0, 1, LARGEST])
def test_every_number_in_json_is_finite_and_in_order(now: str, spent: int, limit: int | None) -> None:
    """At any time of the day, for the smallest and the largest amounts."""
    made = as_json("shop", limit, forecast(spent, limit, spent, at(f"2026-12-01T{now}+00:00"), ZoneInfo("UTC")))
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    low, middle, high = (made[f"projected_daily{suffix}"] for suffix in ("_low", "", "_high"))
    assert isinstance(low, float)
    assert isinstance(middle, float)
    assert isinstance(high, float)
    assert spent / DOLLAR <= low <= middle <= high < math.inf
