"""COST-06: a projection divided by the time that had passed, which was none."""

import json
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from router_ext.costs.days import Dates, Period
from router_ext.costs.forecast import as_json, forecast

ZONE = ZoneInfo("UTC")
FIRST = datetime(2026, 12, 1, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("after_s", "spent", "low", "daily", "high"),
    [
        # No history at all, and none for the first second.
        (0, 0, 0.0, 0.0, 0.0),
        (0, 20_000, 0.02, 0.02, 0.5),
        (0.5, 20_000, 0.02, 0.02, 0.499997),
        # From a second on there is a rate, with that of an hour beside it: 0.02 + 0.02 * 86,399 / 3,600.
        (1, 20_000, 0.499994, 1_728.0, 1_728.0),
        (3, 20_000, 0.499983, 576.0, 576.0),
    ],
)
def test_a_projection_is_bounded_however_young_the_day_is(
    after_s: float, spent: int, low: float, daily: float, high: float
) -> None:
    """One request of two cents, which is also all of the last hour; JSON has neither NaN nor infinity."""
    made = as_json("shop", None, forecast(spent, None, spent, FIRST + after_s, ZONE))
    assert json.loads(json.dumps(made, allow_nan=False)) == {
        "service": "shop",
        "spent_today": spent / 1_000_000,
        "projected_daily": daily,
        "projected_daily_low": low,
        "projected_daily_high": high,
        "rate_last_hour": spent / 1_000_000,
        "budget": None,
        "exhaustion_time": None,
    }


@pytest.mark.parametrize(
    ("today", "days"),
    [(date(2026, 12, 1), 1), (date(2026, 12, 31), 31), (date(2026, 2, 28), 28), (date(2028, 2, 29), 29)],
)
def test_a_month_so_far_has_its_first_and_today(today: date, days: int) -> None:
    """However long it is; on its first it is one day and not none."""
    month = Period.MONTH.dates(today)
    assert month == Dates(today.replace(day=1), today)
    assert (month.last - month.first).days + 1 == days
