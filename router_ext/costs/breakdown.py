"""Costs of a period as the API says them."""

from collections.abc import Callable, Sequence
from typing import Final

from router_ext.costs.days import Dates, Period
from router_ext.model.ledger import Row

_MICRO: Final = 1_000_000


def breakdown(period: Period, dates: Dates, rows: Sequence[Row], *, complete: bool = True) -> dict[str, object]:
    """``rows`` with their sums: of all, and by service, backend and kind. Dollars to the micro-dollar; all in the order
    of the names. ``dates`` are the days that the rows are of, and each row has a key of its own;
    ``complete`` is false where other routers may have more.
    """
    return {
        "period": period.value,
        "from": dates.first.isoformat(),
        "to": dates.last.isoformat(),
        "complete": complete,
        "total_usd": sum(row.micro_usd for row in rows) / _MICRO,
        "rows": [_shown(row) for row in sorted(rows, key=lambda row: row.key)],
        "by_service": _by(rows, lambda row: row.key.service),
        "by_backend": _by(rows, lambda row: row.key.backend),
        "by_kind": _by(rows, lambda row: row.key.kind),
    }


def _by(rows: Sequence[Row], name: Callable[[Row], str]) -> dict[str, float]:
    totals: dict[str, int] = {}
    for row in rows:
        totals[name(row)] = totals.get(name(row), 0) + row.micro_usd
    return {key: totals[key] / _MICRO for key in sorted(totals)}


def _shown(row: Row) -> dict[str, str | int | float]:
    return {
        "day": row.key.day.isoformat(),
        "service": row.key.service,
        "backend": row.key.backend,
        "model": row.key.model,
        "kind": row.key.kind,
        "calls": row.calls,
        "estimated_calls": row.estimated_calls,
        "prompt_tokens": row.prompt_tokens,
        "cached_tokens": row.cached_tokens,
        "completion_tokens": row.completion_tokens,
        "cost_usd": row.micro_usd / _MICRO,
    }
