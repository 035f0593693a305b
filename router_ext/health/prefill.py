"""How fast a backend prefills, learned from first tokens, and how much prefill work it still has.

Sizes are in the unit of ``Prompt.size``: the learned rate swallows the factor to tokens. ``now`` is monotonic seconds.
"""

import math
from dataclasses import dataclass
from typing import Final

from router_ext.model.snapshot import IDLE, Prefill

MIN_SAMPLES: Final = 3
"""Observations before a rate is believed."""

MIN_SIZE: Final = 1024
"""Prompts with less new text than this say nothing about the rate: their time is fixed costs."""

MEMORY: Final = 0.95
"""Weight that an observation keeps when the next one comes: about the last twenty count."""

STEP: Final = 4.0
"""An observation counts for at most this many times faster or slower than the rate so far."""

MIN_SECONDS: Final = 1e-4
"""The shortest prefill that is believed."""


class PrefillRate:
    """Size per second, as the ratio of two decaying sums, so that long prompts weigh more than short ones.

    One wrong observation is bounded by ``STEP``; where the rate really changed, the estimate follows in a few.
    """

    def __init__(self) -> None:
        self._size = 0.0
        self._seconds = 0.0
        self._count = 0

    @property
    def value(self) -> float:
        """The rate, 0 while it is unknown."""
        return self._size / self._seconds if self._count >= MIN_SAMPLES else 0.0

    def observe(self, size: float, seconds: float) -> None:
        """Takes one prefill of ``size`` that kept the backend busy for ``seconds``."""
        if size < MIN_SIZE or not math.isfinite(seconds):
            return
        seconds = max(seconds, MIN_SECONDS)
        rate = self.value
        if rate:
            expected = size / rate
            seconds = min(max(seconds, expected / STEP), expected * STEP)
        self._size = self._size * MEMORY + size
        self._seconds = self._seconds * MEMORY + seconds
        self._count += 1


@dataclass(slots=True)
class _Request:
    """``finish_at`` is when its prefill is expected to end, ``took_s`` how long the backend worked on it alone."""

    size: float
    begun_at: float
    finish_at: float
    took_s: float = math.nan


class _Line:
    """Requests in the order in which they came, and the sum of their sizes."""

    __slots__ = ("requests", "size")

    def __init__(self) -> None:
        self.requests: dict[str, _Request] = {}
        self.size = 0.0

    def add(self, name: str, request: _Request) -> None:
        self.requests[name] = request
        self.size += request.size

    def pop(self, name: str) -> _Request | None:
        request = self.requests.pop(name, None)
        if request is not None:
            # An empty line has no rounding errors left over.
            self.size = self.size - request.size if self.requests else 0.0
        return request

    @property
    def head(self) -> _Request | None:
        return next(iter(self.requests.values()), None)

    def pop_finished(self, now: float) -> None:
        while self.requests:
            name, request = next(iter(self.requests.items()))
            if request.finish_at > now:
                return
            self.pop(name)


class PrefillQueue:
    """The prefill work of one backend, as seen from outside.

    Engines prefill in order, so a first token says when the one before it stopped to be in the way: the time since the
    later of the own arrival and the previous first token is that request's own prefill. This holds however long the
    queue was, and needs no guess of the backlog.

    Requests whose first token does not show (answers that are not streamed) count as work until they are expected to
    be done, and teach nothing. ``state`` is replaced by the calls and never changed.
    """

    def __init__(self) -> None:
        self._rate = PrefillRate()
        self._shown = _Line()
        self._hidden = _Line()
        self._begun: dict[str, _Request] = {}
        self._last_token_at = -math.inf
        self.state: Prefill = IDLE

    def begin(self, name: str, size: float, now: float, *, shows_first_token: bool) -> None:
        """Request ``name`` was sent, whose prompt needs ``size`` (≥ 0) of prefill. It counts at once."""
        rate = self._rate.value
        self._hidden.pop_finished(now)
        finish_at = now + self.state.wait_s(now, rate) + size / rate if rate else math.inf
        line = self._shown if shows_first_token else self._hidden
        line.add(name, _Request(size, now, finish_at))
        self._publish(finish_at)

    def first_token(self, name: str, now: float) -> None:
        """The first token passed. Later calls, and names that are not known, change nothing."""
        request = self._shown.pop(name)
        if request is None:
            return
        request.took_s = now - max(request.begun_at, self._last_token_at)
        self._begun[name] = request
        self._last_token_at = now
        self._begin_anew(now)

    def end(self, name: str, now: float, prefilled: float | None = None) -> None:
        """The request ended, well or not. ``prefilled`` is what the engine had to prefill, None when it did not say:
        then what was expected at the beginning counts. Names that are not known change nothing.
        """
        begun = self._begun.pop(name, None)
        if begun is not None:
            self._learn(begun.size if prefilled is None else prefilled, begun.took_s, now)
        elif self._shown.pop(name) or self._hidden.pop(name):
            self._begin_anew(now)

    def _learn(self, size: float, seconds: float, now: float) -> None:
        known = self._rate.value
        self._rate.observe(size, seconds)
        if known:
            self._publish(self.state.free_at)
        else:
            self._begin_anew(now)

    def _begin_anew(self, now: float) -> None:
        """Expects that what is left begins now."""
        self._hidden.pop_finished(now)
        rate = self._rate.value
        left = self._shown.size + self._hidden.size
        self._publish(now + left / rate if rate else math.inf)

    def _publish(self, free_at: float) -> None:
        head = self._shown.head
        behind = self._shown.size - head.size if head is not None else 0.0
        self.state = Prefill(self._rate.value, self._shown.size + self._hidden.size, behind, free_at)
