"""Calendar days of a time zone as spans of time, and the periods that costs are asked for.

The days of a zone follow each other without gap or overlap: each instant belongs to exactly one. An instant is seconds
since the epoch.
"""

import datetime
import math
from bisect import bisect_left
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from zoneinfo import ZoneInfo

_ONE_DAY: Final = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Day:
    """A calendar day: from ``begin_s``, its first instant, to ``end_s``, the next day's first one."""

    date: datetime.date
    begin_s: int
    end_s: int

    def __contains__(self, now_wall: float) -> bool:
        return self.begin_s <= now_wall < self.end_s

    @property
    def length_s(self) -> int:
        """86,400 for most days; an hour less or more where the clocks change."""
        return self.end_s - self.begin_s

    def elapsed_s(self, now_wall: float) -> float:
        """Seconds since midnight, below ``length_s``, at an instant of the day."""
        return now_wall - self.begin_s

    def ends_in_s(self, now_wall: float) -> int:
        """Seconds to the next midnight, rounded up, at an instant of the day: ≥ 1, as ``Retry-After`` wants it."""
        return math.ceil(self.end_s - now_wall)


def day_at(now_wall: float, zone: ZoneInfo) -> Day:
    """The day that an instant belongs to. A day that has begun does not end by clocks that are put back over midnight:
    the minutes that show yesterday's date again are part of it.
    """
    date = datetime.datetime.fromtimestamp(math.floor(now_wall), zone).date()
    day = day_of(date, zone)
    return day if now_wall < day.end_s else day_of(date + _ONE_DAY, zone)


def day_of(date: datetime.date, zone: ZoneInfo) -> Day:
    """The day with this date. It has no length where the zone's calendar leaves the date out, as Samoa's did with
    2011-12-30.
    """
    return Day(date, _first_instant(date, zone), _first_instant(date + _ONE_DAY, zone))


def _first_instant(date: datetime.date, zone: ZoneInfo) -> int:
    """The first of two midnights; where clocks are put forward over midnight, the instant at which they are."""
    first, second = (
        int(datetime.datetime.combine(date, datetime.time(fold=fold), zone).timestamp()) for fold in (0, 1)
    )
    if first <= second:
        return first
    # A midnight that does not exist is computed with the offset from before the change, and with fold=1 with the one
    # from after it (PEP 495): the change lies between the two.
    between = range(second, first)
    return second + bisect_left(between, date, key=lambda at: datetime.datetime.fromtimestamp(at, zone).date())


@dataclass(frozen=True, slots=True)
class Dates:
    """A range of dates, both ends included."""

    first: datetime.date
    last: datetime.date

    def __contains__(self, date: datetime.date) -> bool:
        return self.first <= date <= self.last


class Period(StrEnum):
    """What costs may be asked for; the value is the word of the API. Each ends today."""

    TODAY = "today"
    WEEK = "week"
    MONTH = "month"

    def dates(self, today: datetime.date) -> Dates:
        """The days of the period so far: a week begins on Monday (ISO 8601), a month on its first."""
        match self:
            case Period.TODAY:
                return Dates(today, today)
            case Period.WEEK:
                return Dates(today - today.weekday() * _ONE_DAY, today)
            case Period.MONTH:
                return Dates(today.replace(day=1), today)
