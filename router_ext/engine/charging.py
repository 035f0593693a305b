"""What answers cost: counted for the caller's service as it is known, whatever became of the answer."""

from typing import Final

from router_ext.engine.estimates import Estimates
from router_ext.engine.last_hour import LastHour
from router_ext.engine.spend import OTHER, Spend
from router_ext.model.backend import Backend
from router_ext.model.decision import Decision
from router_ext.model.ledger import key_of
from router_ext.model.money import SHADOW, cost_micro_usd
from router_ext.model.outcome import Usage
from router_ext.ports import NO_LEDGER, Clock, Ledger, Telemetry


class Charges:
    """Books the usage of each attempt. Services that the configuration does not name count as one. ``estimates``
    are for answers that came without any.
    """

    def __init__(self, spend: Spend, telemetry: Telemetry, clock: Clock, ledger: Ledger = NO_LEDGER) -> None:
        self.last_hour: Final = LastHour()
        self.estimates: Final = Estimates()
        self._spend = spend
        self._ledger = ledger
        self._telemetry = telemetry
        self._clock = clock
        self._named_services: frozenset[str] = frozenset()

    def configure(self, named_services: frozenset[str]) -> None:
        """Takes over the services of a new configuration."""
        self._named_services = named_services

    def flush(self) -> None:
        """What was booked is about to be told of: from then on it is on file, as far as there is one to write to."""
        self._ledger.flush()

    def book(self, decision: Decision, backend: Backend, kind: str, usage: Usage, *, estimated: bool = False) -> None:
        """Counts the tokens and the cost of one answer. ``kind`` is one of ``model.money``; that of a shadow is in the
        ledger, and no budget sees it. ``estimated``: the usage is none that an engine reported.
        """
        caller = decision.request.caller
        micro_usd = cost_micro_usd(backend, usage)
        service = caller.service if caller.service in self._named_services else OTHER
        now_wall = self._clock.wall()
        if kind != SHADOW:
            self._spend.add(service, micro_usd, now_wall)
            self.last_hour.add(service, micro_usd, self._clock.monotonic())
        key = key_of(self._spend.day(now_wall), service, decision, kind)
        self._ledger.book(key, usage, micro_usd, estimated=estimated)
        self._telemetry.charged(caller, backend.name, kind, usage, micro_usd)
        if estimated:
            self._telemetry.usage_estimated(backend.name)
