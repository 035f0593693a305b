"""Costs on the admin port."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from prometheus_client import CollectorRegistry
from starlette.testclient import TestClient

from router_ext.admin.access import Access
from router_ext.admin.api import admin_app
from router_ext.admin.costs import Costs, SharedLedger, cost_routes
from router_ext.admin.status import Status
from router_ext.config.sections import Budget
from router_ext.costs.days import Dates
from router_ext.model.ledger import Row
from router_ext.model.secret import Secret
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import FakeLedger, key, row

NOON = datetime(2026, 12, 2, 12, tzinfo=UTC).timestamp()
YESTERDAY, LAST_SUNDAY = date(2026, 12, 1), date(2026, 11, 29)


class CostsRig:
    """The admin application at noon of Wednesday, 2026-12-02, UTC unless told otherwise."""

    def __init__(self, *rows: Row, zone: str = "UTC", token: str = "", shared: SharedLedger | None = None) -> None:
        self.ledger = FakeLedger(*rows)
        self.spent: dict[str, int] = {}
        self.last_hour: dict[str, int] = {}
        self.budgets: Sequence[Budget] = ()
        self.clock = FakeClock(wall_s=NOON)
        source = Costs(
            self.ledger,
            lambda: self.spent,
            lambda: self.budgets,
            lambda: self.last_hour,
            self.clock,
            lambda: ZoneInfo(zone),
            shared,
        )
        status = Status(
            snapshot=dict, decisions=list, is_ready=lambda: True, uptime_s=lambda: 1.0, registry=CollectorRegistry()
        )
        access = Access(Secret(token) if token else None, exposed=False)
        self.client = TestClient(admin_app(status, access, cost_routes(source)), base_url="http://127.0.0.1")

    def costs(self, query: str = "") -> dict[str, Any]:
        """The body of a good answer."""
        answer = self.client.get(f"/api/costs{query}")
        assert answer.status_code == 200
        body: dict[str, Any] = answer.json()
        return body

    def forecasts(self) -> list[dict[str, Any]]:
        """All of them."""
        body = self.client.get("/api/costs/forecast").json()
        assert set(body) == {"forecasts"}
        told: list[dict[str, Any]] = body["forecasts"]
        return told


class OneSharedLedger:
    """Implements ``SharedLedger``; None is out of reach."""

    def __init__(self, rows: list[Row] | None) -> None:
        self.told = rows
        self.asked: list[Dates] = []

    async def rows(self, dates: Dates) -> list[Row] | None:
        """What was given."""
        self.asked.append(dates)
        return self.told


def test_a_breakdown_has_every_row_and_the_sums_of_them() -> None:
    """Sorted by day and names; dollars to the micro-dollar."""
    rig = CostsRig(
        row(key("shop", "b", "m-b", "fallback"), 1, 2_000_000),
        row(key("shop", "a"), 3, 1),
        row(key("blog", "b", "m-b"), 2, 300_000),
    )
    assert rig.costs() == {
        "period": "today",
        "from": "2026-12-02",
        "to": "2026-12-02",
        "complete": True,
        "total_usd": 2.300001,
        "rows": [
            {
                "day": "2026-12-02",
                "service": "blog",
                "backend": "b",
                "model": "m-b",
                "kind": "proxied",
                "calls": 2,
                "estimated_calls": 0,
                "prompt_tokens": 200,
                "cached_tokens": 80,
                "completion_tokens": 14,
                "cost_usd": 0.3,
            },
            {
                "day": "2026-12-02",
                "service": "shop",
                "backend": "a",
                "model": "m-a",
                "kind": "proxied",
                "calls": 3,
                "estimated_calls": 0,
                "prompt_tokens": 300,
                "cached_tokens": 120,
                "completion_tokens": 21,
                "cost_usd": 0.000001,
            },
            {
                "day": "2026-12-02",
                "service": "shop",
                "backend": "b",
                "model": "m-b",
                "kind": "fallback",
                "calls": 1,
                "estimated_calls": 0,
                "prompt_tokens": 100,
                "cached_tokens": 40,
                "completion_tokens": 7,
                "cost_usd": 2.0,
            },
        ],
        "by_service": {"blog": 0.3, "shop": 2.000001},
        "by_backend": {"a": 0.000001, "b": 2.3},
        "by_kind": {"fallback": 2.0, "proxied": 0.300001},
    }


def test_a_day_without_a_call_costs_nothing() -> None:
    """And has no row."""
    body = CostsRig(row(key(day=YESTERDAY))).costs()
    assert (body["total_usd"], body["rows"], body["by_service"]) == (0.0, [], {})


@pytest.mark.parametrize(
    ("query", "first", "total"),
    [
        ("", "2026-12-02", 0.000001),
        ("?period=today", "2026-12-02", 0.000001),
        ("?period=week", "2026-11-30", 0.000011),
        ("?period=month", "2026-12-01", 0.000011),
    ],
)
def test_a_period_ends_today(query: str, first: str, total: float) -> None:
    """A week begins on Monday, a month on its first; Sunday belongs to neither."""
    rig = CostsRig(row(key(), 1, 1), row(key(day=YESTERDAY), 1, 10), row(key(day=LAST_SUNDAY), 1, 100))
    body = rig.costs(query)
    assert (body["from"], body["to"], body["total_usd"]) == (first, "2026-12-02", total)


def test_today_is_a_day_of_the_zone() -> None:
    """At noon of UTC it is tomorrow already on Kiritimati."""
    assert CostsRig(zone="Pacific/Kiritimati").costs()["to"] == "2026-12-03"
    assert CostsRig(zone="Pacific/Pago_Pago").costs()["to"] == "2026-12-02"


@pytest.mark.parametrize("period", ["", "year", "Today", "today%20"])
def test_another_period_is_refused(period: str) -> None:
    """The three words only."""
    assert CostsRig().client.get(f"/api/costs?period={period}").status_code == 422


def test_a_ledger_that_cannot_be_read_is_an_error_without_its_place() -> None:
    """As with any other store."""
    rig = CostsRig()
    rig.ledger.unreadable = True
    answer = rig.client.get("/api/costs")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "ledger_unavailable")
    assert "secret" not in answer.text


def test_a_forecast_goes_on_at_the_rate_of_the_day() -> None:
    """Half the day, 6 of 10 dollars: 12 at its end, and nothing left at 20:00. The last hour stands beside it."""
    rig = CostsRig()
    rig.spent, rig.last_hour, rig.budgets = {"shop": 6_000_000}, {"shop": 1_000_000}, [Budget("shop", 10.0)]
    assert rig.forecasts() == [
        {
            "service": "shop",
            "spent_today": 6.0,
            "projected_daily": 12.0,
            "projected_daily_low": 12.0,
            "projected_daily_high": 18.0,
            "rate_last_hour": 1.0,
            "budget": 10.0,
            "exhaustion_time": "2026-12-02T20:00:00+00:00",
        }
    ]


def test_who_has_a_budget_or_spent_something_has_a_forecast() -> None:
    """In the order of their names; nobody else, and ``default`` is no service."""
    rig = CostsRig()
    rig.spent = {"shop": 1, "idle": 0, "blog": 1}
    rig.budgets = [Budget("quiet", 1.0), Budget("default", 2.0)]
    assert [told["service"] for told in rig.forecasts()] == ["blog", "quiet", "shop"]


def test_the_default_budget_is_that_of_services_without_their_own() -> None:
    """Without one they have none."""
    rig = CostsRig()
    rig.spent = {"shop": 1, "other": 1}
    rig.budgets = [Budget("shop", 0.000001)]
    assert [(told["service"], told["budget"]) for told in rig.forecasts()] == [("other", None), ("shop", 0.000001)]
    rig.budgets = [Budget("shop", 5.0), Budget("default", 0.1)]
    assert [(told["service"], told["budget"]) for told in rig.forecasts()] == [("other", 0.1), ("shop", 5.0)]


def test_nothing_spent_and_no_budget_is_no_forecast() -> None:
    """An empty list, as after a start."""
    assert CostsRig().forecasts() == []


@pytest.mark.parametrize("path", ["/api/costs", "/api/costs/forecast"])
def test_costs_need_the_token_where_there_is_one(path: str) -> None:
    """As every path below ``/api``."""
    rig = CostsRig(token="t0ken")
    assert rig.client.get(path).status_code == 401
    assert rig.client.get(path, headers={"authorization": "Bearer t0ken"}).status_code == 200


def test_costs_of_a_shared_ledger_are_those_of_all_routers() -> None:
    """Of the days of the period; what this process knows by itself is in it already."""
    shared = OneSharedLedger([row(key("shop"), 5, 50)])
    body = CostsRig(row(key("shop"), 1, 10), shared=shared).costs("?period=month")
    assert (body["complete"], body["total_usd"], len(body["rows"])) == (True, 0.00005, 1)
    assert shared.asked == [Dates(date(2026, 12, 1), date(2026, 12, 2))]


def test_while_the_shared_ledger_is_out_of_reach_costs_are_this_process_s_and_say_so() -> None:
    """A part does not look like the whole."""
    body = CostsRig(row(key("shop"), 1, 10), shared=OneSharedLedger(None)).costs()
    assert (body["complete"], body["total_usd"]) == (False, 0.00001)
