"""The circuit breaker of one backend: errors of requests open it, health probes alone close it, here or in another
router that shares its state.

``now`` is monotonic seconds and never goes back between calls.
"""

import math
from collections import deque
from typing import Final

from router_ext.model.backend import CircuitBreaker

FIRST_BACKOFF_S: Final = 0.5
"""The shortest wait before a probe that does not follow at once."""

RELAPSE_S: Final = 60.0
"""A breaker that opens this soon after a probe closed it was closed in error: the health page says nothing of
inference.
"""

_MOST_DOUBLINGS: Final = 60
"""0.5 s doubled this often is longer than any interval, and no float overflows."""


class Breaker:
    """Open or closed, with nothing between.

    There is no half-open state that lets requests try the backend out: while the breaker is open no request goes there,
    and only a probe closes it. So no request holds a trial slot, and neither a request nor a probe that never settles
    can lock a backend out: the next probe is free to close the breaker.

    4xx answers and successes of requests are not told to it: they neither count nor take errors away.

    Each closing begins a generation. An error belongs to the generation in which its attempt started, and errors of
    earlier ones do not count: a backend that hung shows them long after it has recovered.

    Memory: at most ``error_threshold`` times.
    """

    def __init__(self, settings: CircuitBreaker) -> None:
        self._window_s = settings.window_s
        self._errors: deque[float] = deque(maxlen=settings.error_threshold)
        self._open = False
        self._closed_at = -math.inf
        self._relapses = 0

    def configure(self, settings: CircuitBreaker) -> None:
        """Takes new settings, and keeps whether it is open and the newest errors.

        It does not open by itself: a lower threshold that is reached already opens it at the next error.
        """
        self._window_s = settings.window_s
        self._errors = deque(self._errors, settings.error_threshold)

    @property
    def is_open(self) -> bool:
        """True while no request may go to the backend."""
        return self._open

    def error(self, now: float, started_at: float) -> bool:
        """Takes one error, of an attempt that started at ``started_at``; True when it opened the breaker.

        It opens at the ``error_threshold``-th error of a sliding window: an error counts while it is younger than
        ``window_s``, one of exactly that age does not. An attempt that started at the moment of the last closing
        counts, one from before does not. While the breaker is open nothing changes.
        """
        if self._open or started_at < self._closed_at:
            return False
        self._errors.append(now)
        # As many times as the threshold are kept: it is reached when the oldest of them is in the window.
        self._open = len(self._errors) == self._errors.maxlen and now - self._errors[0] < self._window_s
        if self._open:
            self._count_relapse(now)
        return self._open

    def probed(self, now: float, alive: bool) -> bool:
        """Takes the end of a health probe, however it ended; True when it closed the breaker.

        ``alive`` says that the backend gave an answer that proves life (2xx to 4xx). Closing forgets all errors. A
        probe of a closed breaker changes nothing: it does not take errors away.
        """
        return alive and self.told(now, is_open=False)

    def told(self, now: float, *, is_open: bool) -> bool:
        """Takes what the breaker of another router did; True when this one followed. It is as if this one had counted
        the errors, or its own probe had been answered: from then on there is no difference.
        """
        if self._open is is_open:
            return False
        self._open = is_open
        if is_open:
            self._count_relapse(now)
        else:
            self._closed_at = now
            self._errors.clear()
        return True

    def _count_relapse(self, now: float) -> None:
        self._relapses = self._relapses + 1 if now - self._closed_at <= RELAPSE_S else 0

    def probe_delay_s(self, attempt: int, interval_s: float) -> float:
        """Seconds (≥ 0) to wait before probe number ``attempt`` (0 is the first) since the breaker opened.

        The wait begins with the opening, or with the end of the probe before. It is 0 for ``n = 0`` and
        ``min(interval_s, 0.5 * 2 ** (n - 1))`` after that, where ``n = attempt + relapses``. A relapse is an opening
        at most 60 s after a probe closed the breaker. Each one in a row adds 1, so that a health page that answers
        while inference fails lets fewer and fewer requests run into the backend; a later opening begins anew at 0.
        """
        step = attempt + self._relapses
        if step == 0:
            return 0.0
        return min(interval_s, math.ldexp(FIRST_BACKOFF_S, min(step - 1, _MOST_DOUBLINGS)))
