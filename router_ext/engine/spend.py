"""Money spent today, by service: what this router counts itself, and what others told.

A counter that only grows, for each day, router and service. A router raises its own counters only and tells their
totals; what it is told it merges by the higher one. So messages may be lost, repeated or come in any order, and whoever
has heard of everything knows the same sums.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from itertools import islice
from typing import Final
from zoneinfo import ZoneInfo

from router_ext.costs.days import Day, day_at
from router_ext.model.shared import MAX_MICRO_USD, MAX_TOTALS, SpendTold

OTHER: Final = "other"
"""The service under which those are counted that the configuration does not name."""

TELL_S: Final = 0.5
"""How often ``Spend.due_events`` is to be asked: the others then know of a call's cost within a second."""

TELL_ALL_S: Final = 5.0
"""How often everything is told: so long lasts what a lost message does, and the ignorance of a router that starts."""

MAX_ROUTERS: Final = 256
"""Other routers kept of a day. Each process that starts and spends is one: workers, replicas and their restarts."""

MAX_COUNTS: Final = 64_000
"""Counters of other routers kept of a day: 19 MB when all have the longest names, which only a stranger sends."""

_ONE_DAY: Final = timedelta(days=1)
_NO_DAY: Final = Day(date.min, 0, 0)


class _Ledger:
    """One day. ``totals`` are the sums of all routers by service; ``changed`` holds services to be told of."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = {}
        self.own: dict[str, int] = {}
        self.others: dict[str, dict[str, int]] = {}
        self.changed: set[str] = set()
        self._counts_of_others = 0

    def add(self, service: str, micro_usd: int) -> None:
        if self._raise(self.own, service, min(MAX_MICRO_USD, self.own.get(service, 0) + micro_usd)):
            self.changed.add(service)

    def take(self, told: SpendTold) -> None:
        counts = self.others.get(told.router)
        if counts is None:
            if len(self.others) >= MAX_ROUTERS or not any(micro_usd for _, micro_usd in told.totals):
                return
            counts = self.others[told.router] = {}
        before = len(counts)
        most = before + MAX_COUNTS - self._counts_of_others
        for service, micro_usd in told.totals:
            if service in counts or len(counts) < most:
                self._raise(counts, service, micro_usd)
        self._counts_of_others += len(counts) - before

    def _raise(self, counts: dict[str, int], service: str, micro_usd: int) -> bool:
        growth = micro_usd - counts.get(service, 0)
        if growth <= 0:
            return False
        counts[service] = micro_usd
        self.totals[service] = self.totals.get(service, 0) + growth
        return True


class Spend:
    """The spending of the current day, which is the calendar day of ``timezone``. Amounts are micro-dollars.

    ``router`` differs between processes, also between one and its successor. ``now_wall`` is seconds since the epoch. A
    ledger is kept of today and of tomorrow: clocks differ, and who is at it first may tell of a day before it begins
    here. All others are dropped by the first call of a new day.
    """

    def __init__(self, router: str, timezone: ZoneInfo) -> None:
        self._router = router
        self._timezone = timezone
        self._day = _NO_DAY
        self._ledgers: dict[date, _Ledger] = {}
        self._told_all_at = -math.inf

    def configure(self, timezone: ZoneInfo) -> None:
        """Another time zone; where it is another day, that one's spending counts from now on."""
        self._timezone = timezone
        self._day = _NO_DAY

    def day(self, now_wall: float) -> date:
        """The date of today."""
        self._today(now_wall)
        return self._day.date

    def add(self, service: str, micro_usd: int, now_wall: float) -> None:
        """A call cost ``micro_usd`` (≥ 0). ``service`` is one that the configuration names, or ``OTHER``."""
        self._today(now_wall).add(service, micro_usd)

    def spent(self, service: str, now_wall: float) -> int:
        """What all routers spent for a service today."""
        return self._today(now_wall).totals.get(service, 0)

    def totals(self, now_wall: float) -> Mapping[str, int]:
        """What all routers spent today by service; those of other routers may not be named here."""
        return dict(self._today(now_wall).totals)

    def apply(self, told: SpendTold, now_wall: float) -> None:
        """Takes over what is higher than what is known. Nothing happens for another day than today and tomorrow, for
        this router's own counters, which nobody knows better, and beyond ``MAX_ROUTERS`` and ``MAX_COUNTS``.
        """
        self._today(now_wall)
        ledger = self._ledgers.get(told.day)
        if ledger is not None and told.router != self._router:
            ledger.take(told)

    def events(self, now_wall: float) -> list[SpendTold]:
        """Everything that is known of today, also of other routers: one that starts learns of those that are gone."""
        ledger = self._today(now_wall)
        counters = {self._router: ledger.own} | ledger.others
        return [told for router, counts in counters.items() for told in self._told(router, counts.items())]

    def due_events(self, now: float, now_wall: float) -> list[SpendTold]:
        """What to tell: own counters that grew since the last call, and everything each ``TELL_ALL_S`` seconds. ``now``
        is monotonic seconds; call it every ``TELL_S``.
        """
        ledger = self._today(now_wall)
        changed, ledger.changed = ledger.changed, set()
        if now - self._told_all_at >= TELL_ALL_S:
            self._told_all_at = now
            return self.events(now_wall)
        return list(self._told(self._router, ((service, ledger.own[service]) for service in sorted(changed))))

    def _told(self, router: str, counts: Iterable[tuple[str, int]]) -> Iterator[SpendTold]:
        left = iter(counts)
        while totals := tuple(islice(left, MAX_TOTALS)):
            yield SpendTold(router, self._day.date, totals)

    def _today(self, now_wall: float) -> _Ledger:
        if now_wall not in self._day:
            self._day = day_at(now_wall, self._timezone)
            days = self._day.date, self._day.date + _ONE_DAY
            self._ledgers = {day: self._ledgers.get(day) or _Ledger() for day in days}
        return self._ledgers[self._day.date]
