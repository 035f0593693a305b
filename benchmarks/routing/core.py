"""The real routing core as a policy. It knows no cache and no rate: it learns from first tokens and cached tokens."""

from dataclasses import dataclass
from typing import Final

from benchmarks.routing.cluster import Served
from benchmarks.routing.trace import TOKEN_BYTES, Turn
from router_ext.health.prefill import PrefillQueue
from router_ext.model.affinity import Affinity, Balancing
from router_ext.model.backend import Backend, BackendType, Endpoint
from router_ext.model.decision import Choice
from router_ext.model.request import Api, Caller, InferenceRequest
from router_ext.model.snapshot import BackendState, Health
from router_ext.routing.asked import Asked
from router_ext.routing.memory import Hold, PrefixMemory
from router_ext.routing.pipeline import Pipeline

TTL_S: Final = 1800.0
MAX_ENTRIES: Final = 100_000

_REQUEST: Final = InferenceRequest(Api.CHAT, Caller(), "m", stream=True)


@dataclass(slots=True)
class _Slot:
    backend: Backend
    index: int
    queue: PrefillQueue
    in_flight: int = 0

    def state(self) -> BackendState:
        return BackendState(self.backend, Health.HEALTHY, self.in_flight, prefill=self.queue.state)


@dataclass(frozen=True, slots=True)
class _Open:
    slot: _Slot
    turn: Turn
    hold: Hold


class CorePolicy:
    """One router in front of the nodes."""

    def __init__(self, nodes: int, balancing: Balancing) -> None:
        backends = [
            Backend(f"node-{i}", Endpoint("http", f"node-{i}", 80), BackendType.VLLM, "m", max_concurrent=100_000)
            for i in range(nodes)
        ]
        self._slots = {item.name: _Slot(item, i, PrefillQueue()) for i, item in enumerate(backends)}
        self._snapshot = {name: slot.state() for name, slot in self._slots.items()}
        self._pipeline = Pipeline([], tuple(self._slots), queue_aware=True, balancing=balancing)
        self._memory = PrefixMemory(TTL_S, MAX_ENTRIES)
        self._open: dict[int, _Open] = {}

    def choose(self, number: int, turn: Turn, now: float) -> int:
        """Routes, and counts the request at once."""
        prompt = turn.prompt
        affinity = Affinity(prompt.size, self._memory.match(prompt, now), number, now)
        choice = self._pipeline.route(Asked(_REQUEST, self._snapshot, affinity, now))
        if not isinstance(choice, Choice):
            raise RuntimeError(f"request {number} was refused")
        slot = self._slots[choice.backend.name]
        self._open[number] = _Open(slot, turn, self._memory.hold(prompt, choice.backend.name, choice.matched))
        slot.in_flight += 1
        slot.queue.begin(str(number), prompt.size - choice.matched, now, shows_first_token=True)
        self._show(slot)
        return slot.index

    def first_token(self, number: int, now: float) -> None:
        """The backend holds the prompt."""
        item = self._open[number]
        item.slot.queue.first_token(str(number), now)
        self._memory.serve(item.turn.prompt, item.slot.backend.name, now)
        self._show(item.slot)

    def end(self, number: int, served: Served, now: float) -> None:
        """Learns from the usage."""
        item = self._open.pop(number)
        prompt, name = item.turn.prompt, item.slot.backend.name
        cached = served.cached * TOKEN_BYTES
        item.slot.queue.end(str(number), now, prompt.size - cached)
        if not self._memory.settle(prompt, name, item.hold, cached, now):
            self._memory.serve(prompt, name, now)
        item.slot.in_flight -= 1
        self._show(item.slot)

    def _show(self, slot: _Slot) -> None:
        self._snapshot[slot.backend.name] = slot.state()
