"""The values of ``router-ext top``: of two readings, and as they are written."""

import asyncio
import io
from typing import Any

import pytest
from rich.console import Console

from router_ext.admin.shapes.backends import Backends
from router_ext.admin.shapes.budgets import BudgetList
from router_ext.admin.shapes.figures import Queues, Stats
from router_ext.cli.top.command import Watch, interval_s
from router_ext.cli.top.frame import frame
from router_ext.cli.top.reading import Reading, RouterAwayError
from router_ext.cli.top.table import BudgetNear, Table, table
from tests.fakes.admin_api import backend, budget, figures, queue, stats


def _reading(at_s: float = 0.0, spend: dict[str, float] | None = None, **more: Any) -> Reading:
    backends = Backends.model_validate({"backends": more.pop("shown", [backend("a")])})
    queues = Queues.model_validate({"queues": more.pop("queues", [queue("a")])})
    budgets = BudgetList.model_validate({"budgets": more.pop("budgets", [])})
    by_name = {shown.backend: shown for shown in queues.queues}
    counted = Stats.model_validate(stats(**more))
    return Reading(at_s, counted, tuple(backends.backends), by_name, tuple(budgets.budgets), spend)


def _written(shown: Table | None, trouble: str = "", width: int = 120) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(frame(shown, trouble))
    return out.getvalue()


def test_rates_are_of_the_time_between_two_readings() -> None:
    """A second; errors and refusals likewise."""
    before = _reading(10.0)
    now = _reading(12.0, requests=150, errors=3, refusals=5)
    shown = table(now, before)
    assert (shown.requests_s, shown.errors_s, shown.refusals_s) == (25.0, 0.5, 2.0)


def test_a_backend_has_rates_of_its_own() -> None:
    """None while it is not known of both times."""
    before = _reading(10.0)
    counted = {"a": figures(requests=110, errors=4), "new": figures()}
    now = _reading(14.0, shown=[backend("a"), backend("new")], backends=counted)
    lines = table(now, before).backends
    assert [(line.requests_s, line.errors_s) for line in lines] == [(2.5, 0.5), (None, None)]


@pytest.mark.parametrize(
    "before", [None, _reading(9.0, uptime_seconds=9000.0), _reading(10.0), _reading(9.0, requests=101)]
)
def test_there_are_no_rates_without_an_earlier_reading_of_the_same_router(before: Reading | None) -> None:
    """A router that was started anew counts from 0, and counts never fall."""
    assert table(_reading(10.0), before).requests_s is None


def test_a_line_holds_what_the_routes_say() -> None:
    """The queue is what waits in the engine; pins are of the backend; spending is today's."""
    (line,) = table(_reading(spend={"a": 1.25, "gone": 3.0}), None).backends
    assert (line.health, line.queue, line.in_flight, line.max_concurrent) == ("healthy", 5.0, 2, 8)
    assert (line.ttft_p50_ms, line.ttft_p95_ms, line.pin_hit_ratio, line.spend_usd) == (41.5, 130.0, 0.75, 1.25)


def test_what_is_not_known_is_none() -> None:
    """An engine without figures, no pins asked for, a ledger out of reach."""
    now = _reading(queues=[], backends={"a": figures(pin_hits=0, pin_misses=0)})
    (line,) = table(now, None).backends
    assert (line.queue, line.pin_hit_ratio, line.spend_usd) == (None, None, None)


def test_a_backend_that_cost_nothing_yet_cost_nothing() -> None:
    """The ledger knows no row of it."""
    assert table(_reading(spend={}), None).backends[0].spend_usd == 0.0


def test_the_budget_nearest_its_end_is_shown() -> None:
    """By the share that is spent or reserved."""
    budgets = [
        budget("big", limit_usd=100.0, spent_today_usd=60.0),
        budget("small", limit_usd=1.0, spent_today_usd=0.5, reserved_usd=0.2),
    ]
    assert table(_reading(budgets=budgets), None).budget == BudgetNear("small", 0.7, 1.0)
    assert table(_reading(), None).budget is None


def test_a_frame_has_a_header_and_a_line_a_backend() -> None:
    """In words that need no colour."""
    backends = [backend("a"), backend("b", health="down", circuit_open=True, drained=True, paused_seconds=2.4)]
    now = _reading(12.0, {"a": 0.0312}, requests=150, shown=backends, budgets=[budget("chat")])
    lines = [" ".join(line.split()) for line in _written(table(now, _reading(10.0))).splitlines() if line.strip()]
    assert " ".join(lines[:2]).startswith(
        "router_ext up 1h 1m · 25.0 req/s · 0.0 err/s · 0.0 refused/s · 2 in flight · 3 sessions · pins 75%"
        " · today $1.75 · budget chat 10% of $10.00"
    )
    assert "a healthy 5 2/8 42ms 130ms 75% 0.0 0.0 $0.0312" in lines
    assert "b breaker drained paused 2s - 2/8 42ms 130ms - - - $0.00" in lines


def test_a_router_that_is_away_is_said_first() -> None:
    """Above what was read last, or alone."""
    text = _written(table(_reading(), None), "it is gone")
    assert text.startswith("it is gone\n")
    assert "healthy" in text
    assert _written(None, "it is gone") == "it is gone\n"


def test_a_terminal_of_80_columns_shows_everything() -> None:
    """Also of a backend with a longer name."""
    text = _written(table(_reading(12.0, shown=[backend("vllm-8000-llama")]), None), width=80)
    assert "…" not in text
    assert "vllm-8000-llama" in text


@pytest.mark.parametrize("width", [20, 60, 300])
def test_a_frame_fits_its_terminal(width: int) -> None:
    """Whatever its width: nothing is wider."""
    assert max(len(line) for line in _written(table(_reading(), None), width=width).splitlines()) <= width


def test_a_name_is_no_markup() -> None:
    """Brackets of a service's name are shown as they are."""
    assert "[red]x[/red]" in _written(table(_reading(budgets=[budget("[red]x[/red]")]), None), width=200)


class _Screen:
    def __init__(self) -> None:
        self.shown: list[tuple[Table | None, str]] = []

    def show(self, shown: Table | None, trouble: str = "") -> None:
        self.shown.append((shown, trouble))


def test_a_router_comes_back_by_itself() -> None:
    """Meanwhile the last table stays with the reason; afterwards rates go on from the last reading."""
    answers: list[Reading | str] = ["no answer", _reading(10.0), "no answer", _reading(14.0, requests=140)]

    async def read() -> Reading:
        answer = answers.pop(0)
        if isinstance(answer, str):
            raise RouterAwayError(answer)
        return answer

    async def looked() -> _Screen:
        out = _Screen()
        watch = Watch(read, out)
        while answers:
            await watch.look()
            watch.draw()
        return out

    shown = asyncio.run(looked()).shown
    assert [trouble.partition(",")[0] for _, trouble in shown] == ["no answer", "", "no answer", ""]
    assert shown[0][0] is None
    assert shown[1][0] == shown[2][0]
    assert shown[3][0] is not None
    assert shown[3][0].requests_s == 10.0


@pytest.mark.parametrize(("text", "seconds"), [("1s", 1.0), ("500ms", 0.5), ("2", 2.0), ("0.1", 0.1), ("1h", 3600.0)])
def test_an_interval_is_a_time(text: str, seconds: float) -> None:
    """With its unit, or in seconds."""
    assert interval_s(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "99ms", "2h", "-1", "soon", "1.2.3"])
def test_an_interval_is_neither_nothing_nor_for_ever(text: str) -> None:
    """100 ms to an hour."""
    with pytest.raises(Exception, match="expected a time"):
        interval_s(text)
