"""How busy a backend says it is, how old that is, and when it started anew."""

from typing import Final

from msgspec import Struct

START_JITTER_S: Final = 1.0
"""Start times this close are the same start: some exporters derive them from the wall clock at every scrape. An engine
needs longer than this to load its model.
"""


class QueueReading(Struct, frozen=True):
    """What one metrics page says, over all engines behind it.

    ``waiting`` and ``running`` (≥ 0) count requests, whoever sent them. ``kv_usage`` (0..1) is the fullest engine's
    share of cache held by running requests. ``start_time`` is seconds since the epoch; ``prompt_tokens`` (≥ 0) counts
    since the start. None means that the page does not tell.
    """

    waiting: float
    running: float
    kv_usage: float | None = None
    start_time: float | None = None
    prompt_tokens: float | None = None

    @property
    def requests(self) -> float:
        """Requests in the backend, waiting or running."""
        return self.waiting + self.running


class QueueLoad(Struct, frozen=True):
    """The last reading and its age in seconds (≥ 0)."""

    reading: QueueReading
    age_s: float


class LoadChange(Struct, frozen=True):
    """What a new reading tells beside the load.

    ``restarted`` is true once for each restart: the backend's warm prefixes are gone. ``prompt_tokens`` (≥ 0) is how
    many the backend took since the reading before; after a restart, since that restart.
    """

    restarted: bool = False
    prompt_tokens: float = 0.0


NO_CHANGE: Final = LoadChange()


class LoadHistory:
    """The readings of one backend. ``now`` is monotonic seconds and never goes back between calls."""

    def __init__(self) -> None:
        self._reading: QueueReading | None = None
        self._read_at: float | None = None
        self._start_time: float | None = None
        self._prompt_tokens: float | None = None

    def add(self, reading: QueueReading | None, now: float) -> LoadChange:
        """Takes the outcome of one scrape; None when there was no page, or none that could be understood.

        The marks that tell a restart outlive such gaps: an engine that restarts is away for a while.
        """
        self._reading = reading
        if reading is None:
            return NO_CHANGE
        self._read_at = now
        restarted = self._started_anew(reading)
        change = LoadChange(restarted, self._growth(reading, restarted=restarted))
        self._remember(reading, restarted=restarted)
        return change

    def state(self, now: float, max_age_s: float) -> QueueLoad | None:
        """The load while it is known: not before the first reading, after a failed scrape, or above ``max_age_s``."""
        age_s = self.age_s(now)
        if self._reading is None or age_s is None or age_s > max_age_s:
            return None
        return QueueLoad(self._reading, age_s)

    def age_s(self, now: float) -> float | None:
        """Seconds since the last reading, failed scrapes passed over; None before the first."""
        return None if self._read_at is None else now - self._read_at

    def _started_anew(self, reading: QueueReading) -> bool:
        moved = (
            self._start_time is not None
            and reading.start_time is not None
            and abs(reading.start_time - self._start_time) > START_JITTER_S
        )
        fell = (
            self._prompt_tokens is not None
            and reading.prompt_tokens is not None
            and reading.prompt_tokens < self._prompt_tokens
        )
        return moved or fell

    def _growth(self, reading: QueueReading, *, restarted: bool) -> float:
        """A counter that began again counts in full; of the first one it is not known when it grew."""
        if reading.prompt_tokens is None or self._prompt_tokens is None:
            return 0.0
        return reading.prompt_tokens if restarted else reading.prompt_tokens - self._prompt_tokens

    def _remember(self, reading: QueueReading, *, restarted: bool) -> None:
        """A mark that the page lacks stays as it was, except over a restart, which it would tell a second time."""
        if restarted or reading.start_time is not None:
            self._start_time = reading.start_time
        if restarted or reading.prompt_tokens is not None:
            self._prompt_tokens = reading.prompt_tokens


def effective_load(reading: QueueReading | None, in_flight_now: int, in_flight_at_scrape: int) -> float:
    """Requests in a backend at this instant (≥ ``in_flight_now``), from a reading and the router's own counts.

    ``max(now, reading + (now - at_scrape))``: a scrape counts everybody's requests but is seconds old, while the
    router's own are known at once. So its own change since the scrape is added, and whoever else sends there stays
    counted as scraped. An engine may not show yet what it was sent (vLLM's gauges stand still during a long prefill),
    so the own requests are the least that there is. Nothing counts twice: what the scrape has already seen of the
    router's own requests is in ``at_scrape``. Without a reading the own requests are all that is known.
    """
    if reading is None:
        return float(in_flight_now)
    return max(float(in_flight_now), reading.requests + in_flight_now - in_flight_at_scrape)
