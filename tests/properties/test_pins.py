"""The pin table against a naive one that keeps every hold in lists, for any order of what may happen."""

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from router_ext.model.prefix import Boundary, Prompt
from router_ext.routing.pins import HOLDS_PER_ENTRY, MAX_HOLDERS, PinTable

BACKENDS = st.sampled_from([f"b{i}" for i in range(HOLDS_PER_ENTRY)])


def _prompt(path: str) -> Prompt:
    """Prompts over two letters: equal beginnings have equal keys."""
    marks = tuple(Boundary(path[: i + 1].encode(), 10 * (i + 1)) for i in range(len(path)))
    return Prompt(marks, 10 * len(path))


PROMPTS = st.text("xy", max_size=4).map(_prompt)


@dataclass(frozen=True, slots=True)
class Hold:
    """A backend in one of its lives, and when it last served the prefix."""

    backend: str
    life: int
    at: float


@dataclass(slots=True)
class Entry:
    """One entry of the naive table: its holds, oldest first."""

    key: bytes
    holds: list[Hold]


class Pins(RuleBasedStateMachine):
    """The naive table is a list, least recently used first. A backend's life ends when it is forgotten."""

    def __init__(self) -> None:
        super().__init__()
        self.ttl_s, self.limit, self.now = 20.0, 6, 0.0
        self.table = PinTable(self.ttl_s, self.limit)
        self.naive: list[Entry] = []
        self.lives: dict[str, int] = {}
        self.born = 0

    def find(self, key: bytes) -> Entry | None:
        """The naive table's entry."""
        return next((entry for entry in self.naive if entry.key == key), None)

    def keep(self, entry: Entry, holds: list[Hold]) -> None:
        """Leaves the entry these holds, and removes it when there is none."""
        entry.holds = holds
        if not holds:
            self.naive.remove(entry)

    def alive(self, hold: Hold) -> bool:
        """Neither forgotten nor expired."""
        return self.lives.get(hold.backend) == hold.life and self.now - hold.at < self.ttl_s

    def cut(self) -> None:
        """Keeps the limit."""
        del self.naive[: max(0, len(self.naive) - self.limit)]

    @rule(seconds=st.sampled_from([1.0, 7.0, 20.0]))
    def wait(self, seconds: float) -> None:
        """Time goes by."""
        self.now += seconds

    @rule(prompt=PROMPTS, backend=BACKENDS)
    def insert(self, prompt: Prompt, backend: str) -> None:
        """A request succeeded."""
        self.table.insert(prompt, backend, self.now)
        self.born += 1
        life = self.lives.setdefault(backend, self.born)
        for boundary in reversed(prompt.boundaries):
            entry = self.find(boundary.key) or Entry(boundary.key, [])
            others = [h for h in entry.holds if h.life != life and self.lives.get(h.backend) == h.life]
            self.naive = [other for other in self.naive if other is not entry]
            self.naive.append(Entry(boundary.key, [*others, Hold(backend, life, self.now)][-MAX_HOLDERS:]))
        while self.naive and not any(self.alive(hold) for hold in self.naive[0].holds):
            del self.naive[0]
        if self.naive:
            self.naive[0].holds = [hold for hold in self.naive[0].holds if self.alive(hold)]
        self.cut()

    @rule(prompt=PROMPTS)
    def match(self, prompt: Prompt) -> None:
        """Both tables say the same, in the same order."""
        assert list(self.table.match(prompt, self.now).items()) == list(self.naive_match(prompt).items())

    def naive_match(self, prompt: Prompt) -> dict[str, int]:
        """Every boundary from the longest down, until all backends are found; what adds one counts as used."""
        found: dict[str, int] = {}
        for boundary in reversed(prompt.boundaries):
            entry = self.find(boundary.key)
            if entry is None:
                continue
            self.keep(entry, [hold for hold in entry.holds if self.alive(hold)])
            new = [hold.backend for hold in reversed(entry.holds) if hold.backend not in found]
            found |= dict.fromkeys(new, boundary.size)
            if new:
                self.naive.remove(entry)
                self.naive.append(entry)
            if len(found) == len(self.lives):
                break
        return found

    @rule(prompt=PROMPTS, backend=BACKENDS, beyond=st.sampled_from([0, 10, 25]))
    def drop(self, prompt: Prompt, backend: str, beyond: int) -> None:
        """A predicted hit was none."""
        self.table.drop(prompt, backend, beyond)
        keys = {boundary.key for boundary in prompt.boundaries if boundary.size > beyond}
        for entry in [entry for entry in self.naive if entry.key in keys]:
            self.keep(entry, [hold for hold in entry.holds if hold.life != self.lives.get(backend)])

    @rule(backend=BACKENDS)
    def forget(self, backend: str) -> None:
        """A backend restarted."""
        self.table.forget(backend)
        self.lives.pop(backend, None)

    @rule(ttl_s=st.sampled_from([5.0, 20.0, 100.0]), limit=st.integers(0, 8))
    def resize(self, ttl_s: float, limit: int) -> None:
        """The configuration changed."""
        self.ttl_s, self.limit = ttl_s, limit
        self.table.resize(ttl_s, limit)
        self.cut()

    @invariant()
    def both_have_the_same_length(self) -> None:
        """And no more entries than the limit."""
        assert len(self.table) == len(self.naive) <= self.limit


Pins.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestPins = Pins.TestCase
