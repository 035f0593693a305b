"""The timing model of one simulated engine. Pure: no clock, no I/O; ``now`` is seconds on any steady clock.

Rules: first come, first served; one prefill at a time, for ``uncached tokens / prefill_tps`` seconds; a sequence that
is prefilled decodes beside the others; at most ``max_num_seqs`` are in prefill or decode, the rest waits.
"""

from collections import deque
from dataclasses import dataclass, field

from router_ext.demo.sim.prefix_cache import PrefixCache
from router_ext.demo.sim.prompt import Prompt
from router_ext.demo.sim.settings import SimSettings


@dataclass(slots=True, eq=False)
class Sequence:
    """One prompt in the engine. Until its first token exists ``prefilled_at`` is None and ``cached_tokens`` unknown."""

    prompt: Prompt
    submitted_at: float
    cached_tokens: int = 0
    prefilled_at: float | None = None
    cancelled: bool = False


@dataclass(slots=True)
class Counters:
    """What the engine did since it started."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    generation_tokens: int = 0
    rejected: int = 0
    finished: dict[str, int] = field(default_factory=lambda: {"stop": 0, "length": 0, "abort": 0, "error": 0})


class Engine:
    """Submit, then call ``advance`` whenever ``due`` says so; release or cancel every sequence that was accepted."""

    def __init__(self, settings: SimSettings) -> None:
        self._settings = settings
        self._waiting: deque[Sequence] = deque()
        self._running: set[Sequence] = set()
        self._prefilling: Sequence | None = None
        self._prefill_ends = 0.0
        self.cache = PrefixCache(settings.cache_blocks)
        self.counters = Counters()

    @property
    def running(self) -> int:
        """Sequences in prefill or decode."""
        return len(self._running)

    @property
    def waiting(self) -> int:
        """Sequences that did not start."""
        return len(self._waiting)

    @property
    def kv_usage(self) -> float:
        """Share of the cache that running sequences occupy, 0..1. Cached blocks without a running sequence count 0."""
        held = sum(-(-sequence.prompt.tokens // self._settings.block_size) for sequence in self._running)
        return min(1.0, held / self._settings.cache_blocks)

    @property
    def due(self) -> float | None:
        """When the prefill in progress ends, None when there is none."""
        return self._prefill_ends if self._prefilling else None

    def submit(self, prompt: Prompt, now: float) -> Sequence | None:
        """A new sequence, or None when the queue is full."""
        limit = self._settings.max_queue
        if limit is not None and len(self._waiting) >= limit and not self._can_start():
            self.counters.rejected += 1
            return None
        sequence = Sequence(prompt, now)
        self._waiting.append(sequence)
        self._start_next(now)
        return sequence

    def advance(self, now: float) -> list[Sequence]:
        """The sequences whose prefill ended by ``now``, in order. A prefill starts where the one before it ended."""
        done: list[Sequence] = []
        while self._prefilling and self._prefill_ends <= now:
            done.append(self._end_prefill(self._prefilling))
            self._start_next(self._prefill_ends)
        return [sequence for sequence in done if not sequence.cancelled]

    def release(self, sequence: Sequence, now: float, reason: str, generated: int) -> None:
        """A prefilled sequence ended by itself: its slot is free. ``reason`` is stop, length or error."""
        self.counters.generation_tokens += generated
        self._leave(sequence, now, reason)

    def cancel(self, sequence: Sequence, now: float, generated: int = 0) -> None:
        """The client went away. A prefill in progress runs to its end, as on a real engine; all else stops at once."""
        self.counters.generation_tokens += generated
        sequence.cancelled = True
        if sequence is self._prefilling:
            return
        if sequence in self._running:
            self._leave(sequence, now, "abort")
        elif sequence in self._waiting:
            self._waiting.remove(sequence)
            self.counters.finished["abort"] += 1

    def _can_start(self) -> bool:
        return self._prefilling is None and len(self._running) < self._settings.max_num_seqs

    def _start_next(self, now: float) -> None:
        if not self._waiting or not self._can_start():
            return
        sequence = self._waiting.popleft()
        sequence.cached_tokens = self._cached_tokens(sequence.prompt)
        self._running.add(sequence)
        self._prefilling = sequence
        self._prefill_ends = now + (sequence.prompt.tokens - sequence.cached_tokens) / self._settings.prefill_tps

    def _cached_tokens(self, prompt: Prompt) -> int:
        """Whole blocks only, and never the whole prompt: the last token is always computed."""
        size = self._settings.block_size
        return min(self.cache.match(prompt.blocks), (prompt.tokens - 1) // size) * size

    def _end_prefill(self, sequence: Sequence) -> Sequence:
        self._prefilling = None
        sequence.prefilled_at = self._prefill_ends
        self.cache.insert(sequence.prompt.blocks)
        self.counters.prompt_tokens += sequence.prompt.tokens
        self.counters.cached_tokens += sequence.cached_tokens
        if sequence.cancelled:
            self._running.discard(sequence)
            self.counters.finished["abort"] += 1
        return sequence

    def _leave(self, sequence: Sequence, now: float, reason: str) -> None:
        self._running.discard(sequence)
        self.counters.finished[reason] += 1
        self._start_next(now)
