"""One answer on costs out of those of all workers, each of which has a ledger of its own, and all of them one."""

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any
from zoneinfo import ZoneInfo

from router_ext.costs.breakdown import breakdown
from router_ext.costs.days import Dates, Period
from router_ext.costs.forecast import as_json, forecast
from router_ext.model.ledger import Key, Row, summed

Json = dict[str, Any]


def merged_costs(answers: Iterable[Json]) -> Json:
    """``/api/costs`` of all. There is at least one answer. A complete one says it all. Without any, each is of the
    worker's own ledger: rows of equal keys are added, and where a day ended between two of them, the days of both are
    in it.
    """
    found = list(answers)
    for answer in found:
        if answer["complete"]:
            return answer
    dates = Dates(
        min(date.fromisoformat(answer["from"]) for answer in found),
        max(date.fromisoformat(answer["to"]) for answer in found),
    )
    rows = summed(_row(shown) for answer in found for shown in answer["rows"])
    return breakdown(Period(found[0]["period"]), dates, rows, complete=False)


def _row(shown: Json) -> Row:
    return Row(
        Key(date.fromisoformat(shown["day"]), shown["service"], shown["backend"], shown["model"], shown["kind"]),
        calls=shown["calls"],
        estimated_calls=shown["estimated_calls"],
        prompt_tokens=shown["prompt_tokens"],
        cached_tokens=shown["cached_tokens"],
        completion_tokens=shown["completion_tokens"],
        micro_usd=_micro_usd(shown["cost_usd"]),
    )


def merged_forecasts(answers: Iterable[Json], now_wall: float, zone: ZoneInfo) -> Json:
    """``/api/costs/forecast`` of all. Each knows what all of them spent today, but only its own last hour: the rates
    are added, and the day is projected anew. ``now_wall`` and ``zone`` are as in ``costs.forecast``.
    """
    services: dict[str, list[Json]] = {}
    for answer in answers:
        for told in answer["forecasts"]:
            services.setdefault(told["service"], []).append(told)
    return {"forecasts": [_forecast(service, services[service], now_wall, zone) for service in sorted(services)]}


def _forecast(service: str, answers: Sequence[Json], now_wall: float, zone: ZoneInfo) -> Json:
    spent = max(_micro_usd(told["spent_today"]) for told in answers)
    last_hour = sum(_micro_usd(told["rate_last_hour"]) for told in answers)
    budget = answers[0]["budget"]
    limit = None if budget is None else _micro_usd(budget)
    return as_json(service, limit, forecast(spent, limit, last_hour, now_wall, zone))


def _micro_usd(dollars: float) -> int:
    """Exact up to a billion dollars."""
    return round(dollars * 1_000_000)
