"""What this router tells the others of its backends, and what it takes over from them, of the day's spending too."""

from typing import assert_never

from router_ext.engine.caches import Caches
from router_ext.engine.pool import Pool, Slot
from router_ext.engine.spend import Spend
from router_ext.model.backend import Backend
from router_ext.model.prefix import Prompt
from router_ext.model.shared import BackendEvent, CircuitChanged, PrefixServed, SharedEvent, SpendTold, prefix_served
from router_ext.ports import Clock, SharedState, Telemetry


class Replication:
    """Events of other routers change what is known here. Those of backends are never told again; the spending that was
    heard of is told by ``Spend`` together with the own.
    """

    def __init__(
        self,
        pool: Pool,
        caches: Caches,
        telemetry: Telemetry,
        clock: Clock,
        shared: SharedState,
        *,
        spend: Spend,
    ) -> None:
        self._pool = pool
        self._caches = caches
        self._telemetry = telemetry
        self._clock = clock
        self._shared = shared
        self._spend = spend

    def served(self, backend: Backend, prompt: Prompt) -> None:
        """The backend's cache holds ``prompt`` now."""
        if self._shared.active and prompt.boundaries:
            self._shared.publish(prefix_served(backend, prompt))

    def circuit_changed(self, backend: Backend, *, is_open: bool) -> None:
        """The backend's circuit breaker opened or closed, by what this router saw."""
        self._telemetry.circuit_changed(backend.name, is_open=is_open)
        self._shared.publish(CircuitChanged(backend.name, str(backend.endpoint), is_open))

    def apply(self, event: SharedEvent) -> None:
        """Takes over what another router saw or spent. Nothing happens where no backend of that name is at that place,
        or the feature is off for it.
        """
        match event:
            case SpendTold():
                self._spend.apply(event, self._clock.wall())
            case PrefixServed() | CircuitChanged():
                self._apply_to_backend(event)
            case _:
                assert_never(event)

    def _apply_to_backend(self, event: BackendEvent) -> None:
        slot = self._pool.get(event.backend)
        if slot is None or str(slot.state.backend.endpoint) != event.endpoint:
            return
        match event:
            case PrefixServed():
                self._take_prefix(slot.state.backend, event)
            case CircuitChanged():
                self._take_circuit(slot, event)
            case _:
                assert_never(event)

    def _take_prefix(self, backend: Backend, event: PrefixServed) -> None:
        if backend.model_name == event.model:
            self._caches.told(event.prompt, backend, self._clock.monotonic())

    def _take_circuit(self, slot: Slot, event: CircuitChanged) -> None:
        if slot.told(self._clock.monotonic(), is_open=event.is_open):
            self._telemetry.circuit_changed(event.backend, is_open=event.is_open)
