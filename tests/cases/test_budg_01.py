"""BUDG-01: budgets were reset by local wall time compared with UTC, so hours late, and counted 33 hours of spending."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from router_ext.costs.days import day_at
from router_ext.engine.spend import Spend

KOLKATA = ZoneInfo("Asia/Kolkata")
BORDER = datetime(2026, 11, 30, 18, 30, tzinfo=UTC).timestamp()


def test_the_border_is_midnight_of_the_zone_whatever_it_is_in_utc() -> None:
    """A second before it is the old day with a second to wait, at it and a second after it is the new one."""
    days = [day_at(BORDER + after, KOLKATA) for after in (-1, 0, 1)]
    assert [day.date for day in days] == [date(2026, 11, 30), date(2026, 12, 1), date(2026, 12, 1)]
    assert [day.ends_in_s(BORDER + after) for day, after in zip(days, (-1, 0, 1), strict=True)] == [1, 86_400, 86_399]


def test_spending_before_and_after_the_border_falls_on_its_own_day() -> None:
    """What blocked a service a second before blocks it no longer at the border, and a window is 24 hours long."""
    spend = Spend("me", KOLKATA)
    spend.add("shop", 100, BORDER - 1)
    assert spend.spent("shop", BORDER - 1) == 100
    assert spend.spent("shop", BORDER) == 0
    spend.add("shop", 7, BORDER)
    spend.add("shop", 20, BORDER + 86_399)
    assert spend.spent("shop", BORDER + 86_399) == 27
    assert spend.spent("shop", BORDER + 86_400) == 0
