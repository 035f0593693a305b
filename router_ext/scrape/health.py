"""Health probes: one loop a backend, through the egress listener."""

import asyncio
from typing import Final, Protocol

from router_ext.dispatch.egress import EgressAnswer, EgressUnavailableError
from router_ext.engine.engine import Engine
from router_ext.engine.pool import Slot
from router_ext.health.probe import ProbeHistory, ProbeResult, next_delay_s, result_of_status
from router_ext.model.backend import Backend
from router_ext.model.snapshot import Health
from router_ext.ports import Clock, Telemetry
from router_ext.scrape.per_backend import BackendTasks

PROBE_TIMEOUT_S: Final = 5.0
"""Longest wait for a probe; engines answer late when all their threads are busy."""


class Prober(Protocol):
    """Asks a backend something by GET; see ``EgressClient.get``."""

    async def get(self, backend: Backend, path: str, timeout_s: float) -> EgressAnswer:
        """Raises ``TimeoutError`` or ``EgressUnavailableError``."""
        ...


class HealthChecks:
    """Probes every configured backend, sooner while it is not healthy."""

    def __init__(self, engine: Engine, client: Prober, clock: Clock, telemetry: Telemetry) -> None:
        self._engine = engine
        self._client = client
        self._clock = clock
        self._telemetry = telemetry
        self._tasks = BackendTasks(self._watch, lambda: engine.config.backends, self._forget)
        self._probed: set[str] = set()
        self._all_probed = asyncio.Event()

    async def first_round(self) -> None:
        """Returns when every backend has been probed once."""
        await self._all_probed.wait()

    def configure(self) -> None:
        """Call it after the engine took over a new configuration."""
        self._tasks.configure()

    async def run(self) -> None:
        """Runs until cancelled."""
        await self._tasks.run()

    def _forget(self, backend: Backend) -> None:
        self._probed.discard(backend.name)

    async def _watch(self, backend: Backend) -> None:
        slot = self._engine.pool.get(backend.name) or Slot(backend)
        history = ProbeHistory(slot.state.health)
        attempt, looked_at = 0, self._clock.monotonic()
        while True:
            result = await self._probe(backend)
            # A probe that began before the breaker opened says nothing of the time since.
            if result is not None and not slot.opened.is_set():
                answering = slot.answered_at >= looked_at
                looked_at = self._clock.monotonic()
                self._take(backend, history, result, answering=answering)
            attempt = 0 if history.health is Health.HEALTHY and not slot.state.tripped else attempt + 1
            attempt = await self._rest(slot, history.health, attempt)

    async def _rest(self, slot: Slot, health: Health, attempt: int) -> int:
        """Waits for the next probe and returns its number. A breaker that opens begins anew, with delays of its own."""
        interval_s = self._engine.config.server.health_check_interval_s
        delay_s = slot.probe_delay_s(attempt, interval_s) or next_delay_s(health, attempt, interval_s)
        try:
            await asyncio.wait_for(slot.opened.wait(), delay_s)
        except TimeoutError:
            return attempt
        slot.opened.clear()
        await asyncio.sleep(slot.probe_delay_s(0, interval_s) or 0.0)
        return 0

    def _take(self, backend: Backend, history: ProbeHistory, result: ProbeResult, *, answering: bool) -> None:
        before = history.health
        health = history.add(result, answering=answering)
        self._engine.set_health(backend.name, health, alive=result in (ProbeResult.OK, ProbeResult.ODD))
        first = backend.name not in self._probed
        self._probed.add(backend.name)
        if health is not before or first:
            self._telemetry.health_changed(backend.name, health, result.name.lower())
        if {item.name for item in self._engine.config.backends} <= self._probed:
            self._all_probed.set()

    async def _probe(self, backend: Backend) -> ProbeResult | None:
        """One probe; None when Envoy itself does not answer, which says nothing about the backend."""
        try:
            answer = await self._client.get(backend, backend.health_endpoint, PROBE_TIMEOUT_S)
        except TimeoutError:
            return ProbeResult.SLOW
        except EgressUnavailableError:
            return None
        return ProbeResult.UNREACHABLE if answer.unreachable else result_of_status(answer.status)
