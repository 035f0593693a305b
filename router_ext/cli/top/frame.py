"""One frame of ``router-ext top``: the header and the table, for a terminal."""

from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from router_ext.cli.top.table import BudgetNear, Line, Table

UNKNOWN: Final = "-"

_HEALTH: Final = {"healthy": "green", "degraded": "yellow", "down": "red"}
_COLUMNS: Final = ("queue", "active", "ttft50", "ttft95", "pins", "req/s", "err/s", "today")
"""Short, so that a terminal of 80 columns has room for names."""


def frame(shown: Table | None, trouble: str = "") -> RenderableType:
    """``shown`` is what was read last, None for nothing yet. ``trouble`` says why it is not of now."""
    lines: list[RenderableType] = [Text(trouble, "bold red")] if trouble else []
    if shown is not None:
        lines += [_header(shown), _grid(shown, dim=bool(trouble))]
    return Group(*lines)


def _header(shown: Table) -> Text:
    parts = [
        f"up {_span(shown.uptime_s)}",
        f"{_rate(shown.requests_s)} req/s",
        f"{_rate(shown.errors_s)} err/s",
        f"{_rate(shown.refusals_s)} refused/s",
        f"{shown.in_flight} in flight",
        f"{shown.sessions} sessions",
        f"pins {_share(shown.pin_hit_ratio)}",
        f"today {_usd(shown.spend_usd)}",
    ]
    header = Text("router_ext  ", "bold", overflow="fold")
    header.append(" · ".join(parts), "not bold")
    if shown.budget is not None:
        header.append(" · ", "not bold").append(_budget(shown.budget), _budget_style(shown.budget))
    return header


def _grid(shown: Table, *, dim: bool) -> Grid:
    grid = Grid(box=None, padding=(0, 1, 0, 0), style="dim" if dim else "none", header_style="bold underline")
    grid.add_column("backend", no_wrap=True, min_width=8)
    grid.add_column("state", no_wrap=True)
    for name in _COLUMNS:
        grid.add_column(name, justify="right", no_wrap=True)
    for line in shown.backends:
        grid.add_row(Text(line.backend), _state(line), *_figures(line))
    return grid


def _state(line: Line) -> Text:
    """A backend whose breaker is open is down."""
    state = Text("breaker", "red") if line.circuit_open else Text(line.health, _HEALTH.get(line.health, "none"))
    if line.drained:
        state.append(" drained", "cyan")
    if line.paused_s > 0:
        state.append(f" paused {line.paused_s:.0f}s", "yellow")
    return state


def _figures(line: Line) -> tuple[Text, ...]:
    full = line.in_flight >= line.max_concurrent
    return (
        Text(UNKNOWN if line.queue is None else f"{line.queue:g}", "yellow" if line.queue else "none"),
        Text(f"{line.in_flight}/{line.max_concurrent}", "yellow" if full else "none"),
        Text(_ms(line.ttft_p50_ms)),
        Text(_ms(line.ttft_p95_ms)),
        Text(_share(line.pin_hit_ratio)),
        Text(_rate(line.requests_s)),
        Text(_rate(line.errors_s), "red" if line.errors_s else "none"),
        Text(_usd(line.spend_usd)),
    )


def _budget(budget: BudgetNear) -> str:
    return f"budget {budget.service} {budget.used:.0%} of {_usd(budget.limit_usd)}"


def _budget_style(budget: BudgetNear) -> str:
    return "red" if budget.used >= 1 else "yellow" if budget.used >= 0.8 else "not bold"


def _span(seconds: float) -> str:
    """The two largest units that count: ``3d 4h``, ``4h 5m``, ``5m 6s``."""
    units = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))
    left = int(seconds)
    parts: list[str] = []
    for letter, size in units:
        count, left = divmod(left, size)
        if count or parts or letter == "s":
            parts.append(f"{count}{letter}")
    return " ".join(parts[:2])


def _rate(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.1f}"


def _share(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.0%}"


def _ms(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:.0f}ms" if value < 10_000 else f"{value / 1000:.0f}s"


def _usd(value: float | None) -> str:
    if value is None:
        return UNKNOWN
    return f"${value:.4f}" if 0 < value < 1 else f"${value:,.2f}"
