"""Who watches live requests: each gets what it asked for, as far as it keeps up. Nothing waits for a watcher."""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from router_ext.engine.exchanges import OpenExchange
from router_ext.model.decision import Decision
from router_ext.model.decision_filter import DecisionFilter
from router_ext.model.money import cost_micro_usd
from router_ext.model.outcome import Outcome
from router_ext.model.rejection import Rejection
from router_ext.ports import Telemetry

MAX_WATCHERS: Final = 16

MAX_QUEUED: Final = 1024
"""Happenings that wait for one watcher; of more the oldest go."""


class TooManyWatchersError(Exception):
    """``MAX_WATCHERS`` watch already."""


class Settlement(Struct, frozen=True):
    """How a request ended. ``last`` is the decision of its last attempt, ``also_asked`` the other backends that were
    asked, by name. ``cost_micro_usd`` is that of the last attempt.
    """

    last: Decision
    also_asked: tuple[str, ...]
    outcome: Outcome
    cost_micro_usd: int = 0


class Happening(Struct, frozen=True):
    """A request ended (``settlement``), was refused (``rejection``), or was decided just now (neither).

    ``decision`` is the first one of a request that ended. That of one that was refused before anything was decided has
    no id and no rule.
    """

    decision: Decision
    settlement: Settlement | None = None
    rejection: Rejection | None = None


class Watcher:
    """One watcher's queue. ``decisions``: it also hears of each decision when it is made."""

    def __init__(self, wanted: DecisionFilter, telemetry: Telemetry, *, decisions: bool) -> None:
        self._wanted = wanted
        self._telemetry = telemetry
        self._decisions = decisions
        self._queue: deque[Happening] = deque()
        self._dropped = 0
        self._closed = False
        self._news = asyncio.Event()

    def offer(self, happening: Happening) -> None:
        """Keeps it for the watcher if it asked for such. Never waits."""
        settlement = happening.settlement
        is_decision = settlement is None and happening.rejection is None
        backend = "" if settlement is None else settlement.last.backend
        if (is_decision and not self._decisions) or not self._wanted.matches(happening.decision, backend):
            return
        if len(self._queue) == MAX_QUEUED:
            self._queue.popleft()
            self._dropped += 1
            self._telemetry.watch_event_dropped()
        self._queue.append(happening)
        self._news.set()

    def close(self) -> None:
        """Nothing more will come."""
        self._closed = True
        self._news.set()

    async def next(self) -> tuple[Happening, int] | None:
        """The next happening, and how many before it were dropped; None at the end."""
        while not self._queue:
            if self._closed:
                return None
            self._news.clear()
            await self._news.wait()
        dropped, self._dropped = self._dropped, 0
        return self._queue.popleft(), dropped


class Watching:
    """All watchers of one engine. Used from one event loop."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._watchers: list[Watcher] = []
        self._closed = False

    @property
    def active(self) -> bool:
        """False when nobody watches: then nothing has to be put together."""
        return bool(self._watchers)

    @contextmanager
    def watch(self, wanted: DecisionFilter, *, decisions: bool = False) -> Iterator[Watcher]:
        """A watcher for the block. Raises TooManyWatchersError."""
        if len(self._watchers) >= MAX_WATCHERS:
            raise TooManyWatchersError
        watcher = Watcher(wanted, self._telemetry, decisions=decisions)
        if self._closed:
            watcher.close()
        self._watchers.append(watcher)
        self._telemetry.watchers(len(self._watchers))
        try:
            yield watcher
        finally:
            self._watchers.remove(watcher)
            self._telemetry.watchers(len(self._watchers))

    def close(self) -> None:
        """Ends what every watcher sees, also those that come later."""
        self._closed = True
        for watcher in self._watchers:
            watcher.close()

    def decided(self, decision: Decision) -> None:
        """A backend was chosen for an attempt."""
        if self._watchers:
            self._tell(Happening(decision))

    def refused(self, decision: Decision, rejection: Rejection) -> None:
        """A request was refused."""
        self._tell(Happening(decision, rejection=rejection))

    def settled(self, exchange: OpenExchange, outcome: Outcome) -> None:
        """A request ended."""
        if not self._watchers:
            return
        last, backend = exchange.attempt.decision, exchange.attempt.slot.state.backend
        asked = {exchange.first.backend, *exchange.tried} - {last.backend}
        cost = 0 if outcome.usage is None else cost_micro_usd(backend, outcome.usage)
        self._tell(Happening(exchange.first, Settlement(last, tuple(sorted(asked)), outcome, cost)))

    def _tell(self, happening: Happening) -> None:
        for watcher in self._watchers:
            watcher.offer(happening)
