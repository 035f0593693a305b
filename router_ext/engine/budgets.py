"""Daily budgets: whose requests are served as ever, by a cheaper backend, or not at all.

A service's request is admitted while what was spent today and what its open requests may cost at most are below the
limit together. So requests that come at once at the edge go over it by one of them at most: of this process. What other
workers and replicas have open is not known here, only what all of them have spent.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import ZoneInfo

from router_ext.config.policy import DOWNGRADE
from router_ext.config.sections import DEFAULT_SERVICE, Budget
from router_ext.costs.days import day_at
from router_ext.engine.spend import OTHER, Spend
from router_ext.model.backend import Backend
from router_ext.model.decision import Decision
from router_ext.model.money import cost_micro_usd
from router_ext.model.outcome import Usage
from router_ext.model.request import API_BY_PATH
from router_ext.payload.tokens import BYTES_PER_TOKEN, TokenRatio
from router_ext.ports import Clock, Telemetry

Json = dict[str, Any]

MICRO: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Admitted:
    """There is money left, or no limit."""


@dataclass(frozen=True, slots=True)
class Downgraded:
    """The budget is spent: the backend ``target`` serves, or nobody."""

    target: str


@dataclass(frozen=True, slots=True)
class Rejected:
    """The budget is spent until the day ends, in ``retry_after_s`` (≥ 1)."""

    retry_after_s: int


Admission = Admitted | Downgraded | Rejected

ADMITTED: Final = Admitted()


@dataclass(frozen=True, slots=True)
class Reservation:
    """What one open call may cost at most, in the name of a service that the configuration names, or ``OTHER``."""

    service: str
    micro_usd: int


class Budgets:
    """The budgets in force, and what open calls may cost. ``spend`` knows what was spent.

    A service without an entry of its own falls under ``default``, if there is one, each by itself. Services that the
    configuration does not name are one, as their spending is counted: together they meet that limit.
    """

    def __init__(self, spend: Spend, telemetry: Telemetry, clock: Clock) -> None:
        self._spend = spend
        self._telemetry = telemetry
        self._clock = clock
        self._ratio = TokenRatio()
        self._reserved: dict[str, int] = {}
        self._entries: dict[str, Budget] = {}
        self._named_services: frozenset[str] = frozenset()
        self._zone = ZoneInfo("UTC")

    def configure(self, budgets: Iterable[Budget], named_services: frozenset[str], zone: ZoneInfo) -> None:
        """Takes over a new configuration; what is reserved stays. The day is one of ``zone``."""
        self._entries = {item.service: item for item in budgets}
        self._named_services = named_services
        self._zone = zone

    def admit(self, service: str) -> Admission:
        """What becomes of a request of ``service``, as its caller says it, at this instant."""
        counted = self._counted(service)
        entry = self._entry(counted)
        if entry is None:
            return ADMITTED
        now_wall = self._clock.wall()
        if self._spend.spent(counted, now_wall) + self.reserved(counted) < entry.limit_micro_usd:
            return ADMITTED
        if entry.action == DOWNGRADE:
            return Downgraded(entry.downgrade_target)
        return Rejected(day_at(now_wall, self._zone).ends_in_s(now_wall))

    def reserve(self, decision: Decision, backend: Backend) -> Reservation | None:
        """Sets aside what the call of ``decision`` to ``backend`` may cost. None where no budget holds: give what is
        returned back once, when the call has ended.
        """
        service = self._counted(decision.request.caller.service)
        if decision.request.path not in API_BY_PATH or self._entry(service) is None:
            return None
        if not backend.is_priced:
            self._telemetry.unpriced_call(backend.name)
        most = Usage(self._prompt_tokens(decision), decision.request.max_output_tokens)
        reservation = Reservation(service, cost_micro_usd(backend, most))
        self._reserved[service] = self.reserved(service) + reservation.micro_usd
        return reservation

    def give_back(self, reservation: Reservation) -> None:
        """The call has ended: what it cost is in ``spend`` by now, or never will be."""
        self._reserved[reservation.service] -= reservation.micro_usd

    def learn(self, decision: Decision, usage: Usage) -> None:
        """An engine counted the tokens of a prompt."""
        if self._entries:
            self._ratio.observe(decision.upstream_model, decision.request.prompt_bytes, usage.prompt_tokens)

    def reserved(self, service: str) -> int:
        """Micro-dollars that the open calls of a service that is counted may cost at most."""
        return self._reserved.get(service, 0)

    def spent_ratios(self) -> Mapping[str, float]:
        """What part of its limit (≥ 0) each service that has one has spent today."""
        now_wall = self._clock.wall()
        return {
            service: self._spend.spent(service, now_wall) / entry.limit_micro_usd
            for service, entry in self._entries_in_force()
        }

    def report(self) -> list[Json]:
        """Every service that has a limit, by name, as ``GET /api/budgets`` shows it. ``reserved_usd`` is what the open
        calls of this process may cost at most.
        """
        now_wall = self._clock.wall()
        return [
            {
                "service": service,
                "limit_usd": entry.daily_limit_usd,
                "action": entry.action,
                "downgrade_target": entry.downgrade_target or None,
                "spent_today_usd": self._spend.spent(service, now_wall) / MICRO,
                "reserved_usd": self.reserved(service) / MICRO,
                "resets_in_s": day_at(now_wall, self._zone).ends_in_s(now_wall),
            }
            for service, entry in self._entries_in_force()
        ]

    def _entries_in_force(self) -> list[tuple[str, Budget]]:
        entries = ((service, self._entry(service)) for service in sorted(self._named_services | {OTHER}))
        return [(service, entry) for service, entry in entries if entry is not None]

    def _counted(self, service: str) -> str:
        return service if service in self._named_services else OTHER

    def _entry(self, counted: str) -> Budget | None:
        return self._entries.get(counted) or self._entries.get(DEFAULT_SERVICE)

    def _prompt_tokens(self, decision: Decision) -> int:
        """By what the model counted before, and never fewer than by the usual ratio: the average is no bound."""
        size = decision.request.prompt_bytes
        return max(math.ceil(size / BYTES_PER_TOKEN), self._ratio.estimate(decision.upstream_model, size))
