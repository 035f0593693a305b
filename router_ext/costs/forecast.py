"""What a service will have spent at the end of the day, and when its budget runs out.

Linear from midnight: what was spent until now goes on at the same rate. The rate of the last hour stands beside it, so
that a burst shows.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from router_ext.costs.days import Day, day_at

_NO_TIME_S: Final = 1.0
"""A day younger than this has no rate yet: a call in its first millisecond would make a fortune of a cent."""

_HOUR_S: Final = 3600.0
_MICRO: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Forecast:
    """Amounts are whole micro-dollars; ``low`` ≤ ``projected_daily`` ≤ ``high``.

    ``low`` and ``high`` are what the day costs if the rest of it goes on at the lower or the higher one of its rate
    since midnight and ``rate_last_hour``, which is micro-dollars an hour. ``exhaustion_time`` is in the zone of the
    day, in whole seconds, rounded down.
    """

    spent_today: int
    projected_daily: int
    projected_daily_low: int
    projected_daily_high: int
    rate_last_hour: int
    exhaustion_time: datetime | None


def forecast(
    spent_micro_usd: int, limit_micro_usd: int | None, last_hour_micro_usd: int, now_wall: float, zone: ZoneInfo
) -> Forecast:
    """The forecast at ``now_wall``, seconds since the epoch, for the calendar day of ``zone``.

    ``spent_micro_usd`` (≥ 0) was spent since midnight, ``last_hour_micro_usd`` (≥ 0) in the last 3,600 seconds, which
    may have begun before midnight. ``limit_micro_usd`` (≥ 0) is the budget of a day, None without one.

    The projection is ``spent / elapsed * length of the day``, and the budget is exhausted at
    ``midnight + limit / rate``: now or earlier when it already is, the next midnight at the latest. There is no such
    time when nothing was spent, without a budget, and when it would be after today. In the first second of a day
    spending projects to itself, and exhausts only a budget that it has reached.
    """
    day = day_at(now_wall, zone)
    elapsed_s = day.elapsed_s(now_wall)
    has_rate = elapsed_s >= _NO_TIME_S
    linear = round(spent_micro_usd * day.length_s / elapsed_s) if has_rate else spent_micro_usd
    recent = spent_micro_usd + round(last_hour_micro_usd * (day.length_s - elapsed_s) / _HOUR_S)
    reached = limit_micro_usd is not None and limit_micro_usd <= spent_micro_usd
    exhaustion_s = _exhaustion_s(spent_micro_usd, limit_micro_usd, day, elapsed_s) if has_rate or reached else None
    return Forecast(
        spent_today=spent_micro_usd,
        projected_daily=linear,
        projected_daily_low=min(linear, recent),
        projected_daily_high=max(linear, recent),
        rate_last_hour=last_hour_micro_usd,
        exhaustion_time=None if exhaustion_s is None else datetime.fromtimestamp(exhaustion_s, zone),
    )


def _exhaustion_s(spent: int, limit: int | None, day: Day, elapsed_s: float) -> int | None:
    if limit is None or spent == 0:
        return None
    after_s = elapsed_s * limit / spent
    return day.begin_s + int(after_s) if after_s <= day.length_s else None


def as_json(service: str, limit_micro_usd: int | None, told: Forecast) -> dict[str, str | float | None]:
    """The forecast as the API says it: dollars to the micro-dollar, the time by RFC 3339 in the zone of the day.

    ``limit_micro_usd`` is what ``forecast`` was given.
    """
    return {
        "service": service,
        "spent_today": told.spent_today / _MICRO,
        "projected_daily": told.projected_daily / _MICRO,
        "projected_daily_low": told.projected_daily_low / _MICRO,
        "projected_daily_high": told.projected_daily_high / _MICRO,
        "rate_last_hour": told.rate_last_hour / _MICRO,
        "budget": None if limit_micro_usd is None else limit_micro_usd / _MICRO,
        "exhaustion_time": None if told.exhaustion_time is None else told.exhaustion_time.isoformat(),
    }
