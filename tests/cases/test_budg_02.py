"""BUDG-02: a zone could be stored, but days stayed those of UTC; days of 23 and 25 hours and without a midnight."""

from datetime import UTC, date, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from router_ext.config.loader import ConfigError, parse
from router_ext.costs.days import day_at, day_of
from router_ext.engine.spend import Spend

BERLIN, SANTIAGO = ZoneInfo("Europe/Berlin"), ZoneInfo("America/Santiago")
DAYS = [
    (BERLIN, date(2026, 3, 29), datetime(2026, 3, 28, 23, tzinfo=UTC), 23),
    (BERLIN, date(2026, 10, 25), datetime(2026, 10, 24, 22, tzinfo=UTC), 25),
    (SANTIAGO, date(2026, 9, 6), datetime(2026, 9, 6, 4, tzinfo=UTC), 23),
]


@pytest.mark.parametrize(("zone", "when", "begin", "hours"), DAYS)
def test_a_window_is_as_long_as_the_day(zone: ZoneInfo, when: date, begin: datetime, hours: int) -> None:
    """And every instant of three days around it is in exactly one of their windows."""
    day = day_of(when, zone)
    assert (day.begin_s, day.length_s) == (begin.timestamp(), hours * 3600)
    three = [day_at(day.begin_s - 1, zone), day, day_at(day.end_s, zone)]
    for now in range(three[0].begin_s, three[2].end_s, 900):
        assert sum(now in each for each in three) == 1


@pytest.mark.parametrize(("zone", "_when", "begin", "hours"), DAYS)
def test_spending_is_counted_by_that_window(zone: ZoneInfo, _when: date, begin: datetime, hours: int) -> None:
    """From its first instant to its last."""
    spend, first = Spend("me", zone), begin.timestamp()
    spend.add("shop", 1, first - 1)
    spend.add("shop", 10, first)
    last = first + hours * 3600 - 1
    spend.add("shop", 20, last)
    assert (spend.spent("shop", last), spend.spent("shop", last + 1)) == (30, 0)


def test_santiagos_day_begins_at_one_o_clock() -> None:
    """There is no 00:00 on it."""
    begin = datetime.fromtimestamp(day_of(date(2026, 9, 6), SANTIAGO).begin_s, SANTIAGO)
    assert begin.isoformat() == "2026-09-06T01:00:00-03:00"


@pytest.mark.parametrize("zone", ["Mars/X", ""])
def test_an_unknown_zone_is_refused_and_never_utc(zone: str) -> None:
    """When the configuration is read."""
    text = f"server: {{timezone: '{zone}'}}\nbackends: [{{name: a, url: 'http://a', type: vllm, model_name: m}}]\n"
    with pytest.raises(ConfigError) as error:
        parse(text, "router.yaml", Path("/etc/router"), {})
    assert [(problem.path, problem.message) for problem in error.value.problems] == [
        ("server.timezone", f"expected an IANA time zone like UTC or Europe/Berlin, got '{zone}'")
    ]
