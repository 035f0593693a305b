"""Queue depth of every engine that shows it: one loop a backend, through the egress listener."""

import asyncio
import zlib
from collections.abc import Callable
from typing import Final, Protocol

from router_ext.config.sections import RouterConfig
from router_ext.dispatch.egress import MAX_ANSWER_BYTES, EgressUnavailableError
from router_ext.health.load import QueueReading
from router_ext.model.backend import Backend
from router_ext.ports import Clock
from router_ext.scrape.health import Prober
from router_ext.scrape.per_backend import BackendTasks
from router_ext.scrape.queue_page import PAGE_NAMES, QueuePage, read_queue_page

METRICS_PATH: Final = "/metrics"
"""Below the root of the backend's URL, as its health probe."""

SCRAPE_TIMEOUT_S: Final = 5.0
"""Longest wait for a page; a page that comes later tells of another time."""

_NO_PAGE: Final = QueuePage(None)


class QueueSink(Protocol):
    """Takes what the scrapes find."""

    def report(self, backend: str, reading: QueueReading | None, now: float) -> None:
        """The outcome of one scrape of a configured backend, at ``now`` monotonic seconds; None: load not known."""
        ...

    def page_errors(self, backend: str, count: int) -> None:
        """A page had ``count`` (≥ 1) values that could not be used; called beside ``report``."""
        ...


class QueueScraper:
    """Scrapes every backend of a type with a known page, each ``queue_scrape_interval_s`` from an offset of its own."""

    def __init__(self, config: Callable[[], RouterConfig], client: Prober, clock: Clock, sink: QueueSink) -> None:
        self._config = config
        self._client = client
        self._clock = clock
        self._sink = sink
        self._begun_with_s = self._interval_s
        self._tasks = BackendTasks(self._watch, lambda: filter(is_scrapable, config().backends))

    def configure(self) -> None:
        """Call it after a new configuration was taken over. Another interval begins every loop again."""
        before, self._begun_with_s = self._begun_with_s, self._interval_s
        self._tasks.configure(anew=before != self._begun_with_s)

    async def run(self) -> None:
        """Runs until cancelled."""
        await self._tasks.run()

    async def _watch(self, backend: Backend) -> None:
        due = self._clock.monotonic() + first_delay_s(backend.name, self._interval_s)
        while True:
            await asyncio.sleep(due - self._clock.monotonic())
            page = await self._scrape(backend)
            self._tell(backend.name, page)
            due = max(due + self._interval_s, self._clock.monotonic())

    def _tell(self, name: str, page: QueuePage) -> None:
        self._sink.report(name, page.reading, self._clock.monotonic())
        if page.errors:
            self._sink.page_errors(name, page.errors)

    async def _scrape(self, backend: Backend) -> QueuePage:
        """One page. A page that was cut at the client's limit may lack engines, so it tells nothing."""
        try:
            answer = await self._client.get(backend, METRICS_PATH, min(self._interval_s, SCRAPE_TIMEOUT_S))
        except (TimeoutError, EgressUnavailableError):
            return _NO_PAGE
        if answer.status != 200 or len(answer.body) >= MAX_ANSWER_BYTES:
            return _NO_PAGE
        return read_queue_page(answer.body, PAGE_NAMES[backend.type], backend.model_name)

    @property
    def _interval_s(self) -> float:
        return self._config().server.queue_scrape_interval_s


def is_scrapable(backend: Backend) -> bool:
    """True for engine types whose metrics page is known."""
    return backend.type in PAGE_NAMES


def first_delay_s(name: str, interval_s: float) -> float:
    """Seconds (0 ≤ x < ``interval_s``) before a backend's first scrape: fixed by its name, spread over the interval."""
    return zlib.crc32(name.encode()) / 2**32 * interval_s
