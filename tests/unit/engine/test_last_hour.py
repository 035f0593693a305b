"""A rolling hour of spending in buckets of a minute."""

import pytest

from router_ext.engine.last_hour import LastHour


def test_amounts_of_an_hour_add_up_by_service() -> None:
    """Whichever minute they are of."""
    hour = LastHour()
    hour.add("shop", 1, 0.0)
    hour.add("shop", 20, 59.9)
    hour.add("shop", 300, 60.0)
    hour.add("blog", 4000, 3599.9)
    assert hour.totals(3599.9) == {"shop": 321, "blog": 4000}


@pytest.mark.parametrize("at", [0.0, 30.0, 59.9])
@pytest.mark.parametrize(("now", "total"), [(3599.9, {"shop": 5}), (3600.0, {})])
def test_an_amount_counts_until_its_minute_is_an_hour_ago(at: float, now: float, total: dict[str, int]) -> None:
    """So for 3,540 s at least and 3,600 s at most."""
    hour = LastHour()
    hour.add("shop", 5, at)
    assert hour.totals(now) == total


def test_the_window_rolls_minute_by_minute() -> None:
    """One micro-dollar each minute for two hours: there are never more than sixty."""
    hour = LastHour()
    seen = []
    for minute in range(120):
        hour.add("shop", 1, 60.0 * minute)
        seen.append(hour.totals(60.0 * minute)["shop"])
    assert seen == [*range(1, 61), *[60] * 60]


def test_after_a_long_silence_nothing_is_left() -> None:
    """And the next amount begins anew."""
    hour = LastHour()
    hour.add("shop", 5, 100.0)
    hour.add("shop", 7, 1e6)
    assert hour.totals(1e6) == {"shop": 7}
    assert hour.totals(2e6) == {}


def test_adding_forgets_too() -> None:
    """Memory does not depend on being asked for totals."""
    hour = LastHour()
    for minute in range(1000):
        hour.add(f"service-{minute}", 1, 60.0 * minute)
    assert len(hour.totals(60.0 * 999)) == 60
