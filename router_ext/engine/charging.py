"""What answers cost: counted for the caller's service as it is known, whatever became of the answer."""

from router_ext.engine.spend import OTHER, Spend
from router_ext.model.backend import Backend
from router_ext.model.decision import Decision
from router_ext.model.money import cost_micro_usd
from router_ext.model.outcome import Usage
from router_ext.ports import Clock, Telemetry


class Charges:
    """Books the usage of each attempt. Services that the configuration does not name count as one."""

    def __init__(self, spend: Spend, telemetry: Telemetry, clock: Clock) -> None:
        self._spend = spend
        self._telemetry = telemetry
        self._clock = clock
        self._named_services: frozenset[str] = frozenset()

    def configure(self, named_services: frozenset[str]) -> None:
        """Takes over the services of a new configuration."""
        self._named_services = named_services

    def book(self, decision: Decision, backend: Backend, kind: str, usage: Usage) -> None:
        """Counts the tokens and the cost of one answer. ``kind`` is one of ``model.money``."""
        caller = decision.request.caller
        micro_usd = cost_micro_usd(backend, usage)
        service = caller.service if caller.service in self._named_services else OTHER
        self._spend.add(service, micro_usd, self._clock.wall())
        self._telemetry.charged(caller, backend.name, kind, usage, micro_usd)
