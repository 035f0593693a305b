"""One answer on costs out of those of all workers."""

from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from router_ext.costs.breakdown import breakdown
from router_ext.costs.days import Dates, Period
from router_ext.costs.forecast import as_json, forecast
from router_ext.model.ledger import Row
from router_ext.workers.merge_costs import merged_costs, merged_forecasts
from tests.fakes.ledger import TODAY, key, row

UTC_ZONE = ZoneInfo("UTC")
NOON = datetime(2026, 12, 2, 12, tzinfo=UTC).timestamp()


def answer(*rows: Row, first: date = TODAY, last: date = TODAY) -> dict[str, Any]:
    """A worker's answer while it knows of itself only."""
    return breakdown(Period.WEEK, Dates(first, last), rows, complete=False)


def test_rows_of_equal_keys_are_added_and_the_others_stand_beside_them() -> None:
    """As if one ledger had it all, sums included."""
    one = answer(row(key(), 2, 1_000_001), row(key("blog"), 1, 5))
    other = answer(row(key(), 3, 2), row(key(kind="shadow"), 1, 70))
    merged = merged_costs([one, other])
    assert merged == answer(row(key("blog"), 1, 5), row(key(), 5, 1_000_003), row(key(kind="shadow"), 1, 70))
    assert (merged["total_usd"], merged["by_kind"]) == (1.000078, {"proxied": 1.000008, "shadow": 0.00007})


def test_large_and_small_amounts_are_added_to_the_micro_dollar() -> None:
    """Floats of dollars are not: 0.1 and 0.2 are no 0.3."""
    merged = merged_costs([answer(row(key(), 1, 100_000)), answer(row(key(), 1, 200_000))])
    assert merged["total_usd"] == 0.3
    most = 1_000_000_000_000_001
    assert merged_costs([answer(row(key(), 1, most)), answer(row(key(), 1, 1))])["total_usd"] == 1_000_000_000.000002


def test_one_worker_s_answer_stays_as_it_is() -> None:
    """Also without any row."""
    for only in (answer(row(key(), 2, 17)), answer()):
        assert merged_costs([only]) == only


def test_a_midnight_between_two_answers_is_in_both_days() -> None:
    """Each worker has its own idea of today, for a moment."""
    early = answer(row(key(day=date(2026, 12, 1))), first=date(2026, 12, 1), last=date(2026, 12, 1))
    merged = merged_costs([answer(row(key())), early])
    assert (merged["from"], merged["to"]) == ("2026-12-01", "2026-12-02")
    assert [shown["day"] for shown in merged["rows"]] == ["2026-12-01", "2026-12-02"]


def test_a_worker_that_knows_of_all_says_it_all() -> None:
    """The others' own rows are in its answer already."""
    whole = breakdown(Period.WEEK, Dates(TODAY, TODAY), [row(key(), 5, 50)])
    assert merged_costs([answer(row(key(), 2, 20)), whole, answer(row(key(), 3, 30))]) == whole


def _told(service: str, spent: int, last_hour: int, limit: int | None = None) -> dict[str, Any]:
    return as_json(service, limit, forecast(spent, limit, last_hour, NOON, UTC_ZONE))


def test_forecasts_add_the_hours_of_all_workers_and_not_the_day_that_all_know() -> None:
    """At noon: 12 dollars until now, and 3 dollars an hour of all workers together go on for 12 hours."""
    one = {"forecasts": [_told("shop", 12_000_000, 1_000_000, 20_000_000)]}
    other = {"forecasts": [_told("blog", 1, 1), _told("shop", 12_000_000, 2_000_000, 20_000_000)]}
    blog, shop = merged_forecasts([one, other], NOON, UTC_ZONE)["forecasts"]
    assert blog == _told("blog", 1, 1)
    assert shop == {
        "service": "shop",
        "spent_today": 12.0,
        "projected_daily": 24.0,
        "projected_daily_low": 24.0,
        "projected_daily_high": 48.0,
        "rate_last_hour": 3.0,
        "budget": 20.0,
        "exhaustion_time": "2026-12-02T20:00:00+00:00",
    }


def test_of_two_answers_on_the_day_the_higher_one_is_newer() -> None:
    """A worker hears of the others' spending within a second."""
    answers = [{"forecasts": [_told("shop", spent, 0)]} for spent in (5_000_000, 6_000_000)]
    assert merged_forecasts(answers, NOON, UTC_ZONE)["forecasts"][0]["spent_today"] == 6.0
    assert merged_forecasts([], NOON, UTC_ZONE) == {"forecasts": []}
