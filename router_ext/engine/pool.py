"""The backends as they live: health, requests in flight, and what their answers taught."""

import asyncio
import math
from collections.abc import Iterable, Mapping

from router_ext.health.breaker import Breaker
from router_ext.health.latency import TtftWindow
from router_ext.health.load import LoadChange, LoadHistory, QueueReading, effective_load
from router_ext.health.prefill import PrefillQueue
from router_ext.model.backend import Backend
from router_ext.model.snapshot import BackendState, Health, Snapshot


class Slot:
    """One backend's live state. It is down while the probes say so, and while its circuit breaker is open.

    An exchange holds on to the slot that it was counted in, so that its release reaches that very slot also after the
    backend was removed or configured anew. ``answered_at`` is the monotonic time of the last answer below 500,
    ``predicted_ttft_s`` what was expected for the last request that was sent there. ``opened`` is set whenever the
    breaker opens; who probes the backend clears it.
    """

    def __init__(self, backend: Backend) -> None:
        self.answered_at = -math.inf
        self.queue = LoadHistory()
        self.opened = asyncio.Event()
        self._breaker = None if backend.circuit_breaker is None else Breaker(backend.circuit_breaker)
        self._ttft = TtftWindow()
        self._probed = Health.DOWN
        self._paused_until = -math.inf
        self._prefill = PrefillQueue()
        self.predicted_ttft_s: float | None = None
        self._in_flight_at_scrape = 0
        self._reading: QueueReading | None = None
        self._state = BackendState(backend, Health.DOWN)
        self._shown: dict[str, BackendState] = {}

    @property
    def state(self) -> BackendState:
        """The state at this instant."""
        return self._state

    def show_in(self, states: dict[str, BackendState]) -> None:
        """Keeps its entry of ``states`` true from now on, and that of no other mapping."""
        self._shown = states
        states[self._state.backend.name] = self._state

    def acquire(self) -> None:
        """Counts one request more."""
        self._put(in_flight=self._state.in_flight + 1)

    def release(self) -> None:
        """Counts one request less. Raises RuntimeError when none was counted."""
        if self._state.in_flight == 0:
            raise RuntimeError(f"backend {self._state.backend.name!r} released more often than acquired")
        self._put(in_flight=self._state.in_flight - 1)

    def probed(self, health: Health, now: float, *, alive: bool) -> bool:
        """What the probes say; ``alive``: the last one got an answer that proves life. True: it closed the breaker."""
        self._probed = health
        closed = self._breaker is not None and self._breaker.probed(now, alive)
        self._put()
        return closed

    def probe_delay_s(self, attempt: int, interval_s: float) -> float | None:
        """Seconds until probe ``attempt`` (from 0) since the breaker opened; None while it is closed."""
        return self._breaker.probe_delay_s(attempt, interval_s) if self._breaker and self._breaker.is_open else None

    def error(self, now: float, started_at: float) -> bool:
        """An attempt that began at ``started_at`` failed. True when that opened the breaker."""
        if self._breaker is None or not self._breaker.error(now, started_at):
            return False
        self.opened.set()
        self._put()
        return True

    def told(self, now: float, *, is_open: bool) -> bool:
        """The breaker of another router opened or closed. True when that did the same to this one."""
        if self._breaker is None or not self._breaker.told(now, is_open=is_open):
            return False
        if is_open:
            self.opened.set()
        self._put()
        return True

    def pause(self, until: float) -> None:
        """The backend wants no requests before ``until``; a longer pause stands."""
        self._paused_until = max(self._paused_until, until)
        self._put()

    def took(self, ttft_s: float, now: float) -> None:
        """One time to the first token, or to the full answer of a request without a stream."""
        self._ttft.add(ttft_s, now)
        self._put()

    def set_backend(self, backend: Backend) -> None:
        """The same upstream with other settings."""
        if backend.model_name != self._state.backend.model_name:
            self.restarted()
        if backend.circuit_breaker is None:
            self._breaker = None
        elif self._breaker is None:
            self._breaker = Breaker(backend.circuit_breaker)
        else:
            self._breaker.configure(backend.circuit_breaker)
        self._put(backend=backend)

    def scraped(self, reading: QueueReading | None, now: float) -> LoadChange:
        """What the backend says of its queue; None when that is not known."""
        self._reading, self._in_flight_at_scrape = reading, self._state.in_flight
        change = self.queue.add(reading, now)
        self._put()
        return change

    def restarted(self) -> None:
        """The backend started anew: what was learned of it, and what it had to do, is void."""
        self._prefill = PrefillQueue()
        self._ttft = TtftWindow()
        self.predicted_ttft_s = None
        self._put()

    def begin_prefill(self, name: str, missing: int, now: float, *, shows_first_token: bool) -> None:
        """Request ``name`` is sent, of whose prompt the cache lacks ``missing``."""
        work = self._prefill.state
        if work.rate:
            self.predicted_ttft_s = work.wait_s(now, work.rate) + missing / work.rate
        self._prefill.begin(name, missing, now, shows_first_token=shows_first_token)
        self._put()

    def first_token(self, name: str, now: float) -> None:
        """The first token of request ``name`` passed."""
        self._prefill.first_token(name, now)
        self._put()

    def end_prefill(self, name: str, now: float, prefilled: float | None = None) -> None:
        """Request ``name`` ended; ``prefilled`` is what the engine says it computed, None when it does not say."""
        self._prefill.end(name, now, prefilled)
        self._put()

    def _put(self, *, backend: Backend | None = None, in_flight: int | None = None) -> None:
        old = self._state
        own = old.in_flight if in_flight is None else in_flight
        tripped = self._breaker is not None and self._breaker.is_open
        self._state = BackendState(
            old.backend if backend is None else backend,
            Health.DOWN if tripped else self._probed,
            own,
            effective_load(self._reading, own, self._in_flight_at_scrape) - own,
            self._prefill.state,
            tripped,
            self._paused_until,
            self._ttft.stats,
        )
        self._shown[self._state.backend.name] = self._state


class Pool:
    """All configured backends by name."""

    def __init__(self) -> None:
        self._slots: dict[str, Slot] = {}
        self._states: dict[str, BackendState] = {}

    def configure(self, backends: Iterable[Backend]) -> None:
        """Takes over a new set. A backend that stays at its endpoint keeps its health and count; others start down."""
        slots: dict[str, Slot] = {}
        for backend in backends:
            old = self._slots.get(backend.name)
            if old is not None and old.state.backend.endpoint == backend.endpoint:
                old.set_backend(backend)
                slots[backend.name] = old
            else:
                slots[backend.name] = Slot(backend)
        states: dict[str, BackendState] = {}
        for name, slot in self._slots.items():
            if slots.get(name) is not slot:
                slot.show_in({})
        for slot in slots.values():
            slot.show_in(states)
        self._slots, self._states = slots, states

    def __getitem__(self, name: str) -> Slot:
        return self._slots[name]

    def get(self, name: str) -> Slot | None:
        """The slot of a configured backend, else None."""
        return self._slots.get(name)

    def slots(self) -> Mapping[str, Slot]:
        """Every slot by backend name, in the configuration's order."""
        return self._slots

    def snapshot(self) -> Snapshot:
        """The state of all backends, which changes with the next event: use it without an await in between."""
        return self._states
