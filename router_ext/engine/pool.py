"""The backends as they live: health, requests in flight, and what their answers taught."""

import asyncio
import math
from collections.abc import Iterable, Mapping
from typing import Final

from router_ext.engine.tally import Tally, backend_key
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

    Where the router has several workers, ``tally`` is where they see each other's requests, and ``key`` the backend's
    key there. The state then counts what all of them have in flight, the others as of the last ``look``.
    ``ended_elsewhere`` is set whenever some of the others' have ended; who waits for room clears it.
    """

    def __init__(self, backend: Backend, tally: Tally | None = None, *, drained: bool = False) -> None:
        self.key: Final = backend_key(backend)
        self._tally = tally
        self._own = 0
        self._others = 0
        self.ended_elsewhere = False
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
        self._drained = drained
        self._state = BackendState(backend, Health.DOWN, drained=drained)
        self._shown: dict[str, BackendState] = {}

    @property
    def state(self) -> BackendState:
        """The state at this instant."""
        return self._state

    @property
    def own_in_flight(self) -> int:
        """Requests in flight that this process has sent, without those of the router's other workers."""
        return self._own

    def show_in(self, states: dict[str, BackendState]) -> None:
        """Keeps its entry of ``states`` true from now on, and that of no other mapping."""
        self._shown = states
        states[self._state.backend.name] = self._state

    def acquire(self) -> None:
        """Counts one request more."""
        self._count(1)

    def release(self) -> None:
        """Counts one request less. Raises RuntimeError when none was counted."""
        if self._own == 0:
            raise RuntimeError(f"backend {self._state.backend.name!r} released more often than acquired")
        self._count(-1)

    def others_in_flight(self) -> int:
        """Requests that the router's other workers have in flight there now."""
        return 0 if self._tally is None else self._tally.others(self.key)

    def look(self) -> None:
        """Takes the others' requests into the state."""
        before, others = self._others, self.others_in_flight()
        if others != before:
            self._others = others
            self._put()
        if others < before:
            self.ended_elsewhere = True

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

    def set_backend(self, backend: Backend, *, drained: bool = False) -> None:
        """The same upstream with other settings."""
        self._drained = drained
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
        self.look()
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

    def _count(self, change: int) -> None:
        self._own += change
        if self._tally is not None:
            self._tally.add(self.key, change)
        self._put()

    def _put(self, *, backend: Backend | None = None) -> None:
        old, in_flight = self._state, self._own + self._others
        tripped = self._breaker is not None and self._breaker.is_open
        self._state = BackendState(
            old.backend if backend is None else backend,
            Health.DOWN if tripped else self._probed,
            in_flight,
            effective_load(self._reading, in_flight, self._in_flight_at_scrape) - in_flight,
            self._prefill.state,
            tripped,
            self._paused_until,
            self._ttft.stats,
            self._drained,
        )
        self._shown[self._state.backend.name] = self._state


class Pool:
    """All configured backends by name. ``tally`` is that of the router's workers, None where it is one process."""

    def __init__(self, tally: Tally | None = None) -> None:
        self._tally = tally
        self._counted_alone: tuple[str, ...] = ()
        self._slots: dict[str, Slot] = {}
        self._states: dict[str, BackendState] = {}

    def configure(self, backends: Iterable[Backend], drained: frozenset[str] = frozenset()) -> None:
        """Takes over a new set. A backend that stays at its endpoint keeps its health and count; others start down.
        Those named in ``drained`` get no new requests.
        """
        slots: dict[str, Slot] = {}
        for backend in backends:
            old = self._slots.get(backend.name)
            if old is not None and old.state.backend.endpoint == backend.endpoint:
                old.set_backend(backend, drained=backend.name in drained)
                slots[backend.name] = old
            else:
                slots[backend.name] = Slot(backend, self._tally, drained=backend.name in drained)
        states: dict[str, BackendState] = {}
        for name, slot in self._slots.items():
            if slots.get(name) is not slot:
                slot.show_in({})
        for slot in slots.values():
            slot.show_in(states)
        self._slots, self._states = slots, states
        if self._tally is not None:
            alone = frozenset(self._tally.claim(slot.key for slot in slots.values()))
            self._counted_alone = tuple(name for name, slot in slots.items() if slot.key in alone)

    @property
    def tally(self) -> Tally | None:
        """That of the router's workers, None where it is one process."""
        return self._tally

    @property
    def counted_alone(self) -> tuple[str, ...]:
        """Backends whose requests the router's other workers do not see, since the tally has no place for them."""
        return self._counted_alone

    def __getitem__(self, name: str) -> Slot:
        return self._slots[name]

    def get(self, name: str) -> Slot | None:
        """The slot of a configured backend, else None."""
        return self._slots.get(name)

    def slots(self) -> Mapping[str, Slot]:
        """Every slot by backend name, in the configuration's order."""
        return self._slots

    def snapshot(self) -> Snapshot:
        """The state of all backends, which changes with the next event: use it without an await in between.

        Where there are other workers their counts are read for it: 4 µs for 3 of them and 10 backends.
        """
        if self._tally is not None:
            for slot in self._slots.values():
                slot.look()
        return self._states

    def ended_elsewhere(self) -> bool:
        """True when requests have ended at other workers since this was asked last."""
        self.snapshot()
        ended = [slot for slot in self._slots.values() if slot.ended_elsewhere]
        for slot in ended:
            slot.ended_elsewhere = False
        return bool(ended)
