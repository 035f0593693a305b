"""The ledgers of all routers in Redis or Valkey: one hash for each day, one field for what a process booked of a row.

The file stays the first copy. What it holds is pushed as totals that only grow, so that a push may be repeated, late or
come in any order. Nothing waits for it: a server that is away gets everything when it is back, and one that came back
with nothing gets it too, since each connection begins with all that is on file.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, date, datetime, time, timedelta
from itertools import count
from typing import Any, Final, Protocol

from redis.asyncio import Redis
from redis.exceptions import RedisError

from router_ext.costs.days import Dates
from router_ext.ledger.fields import name_of, part_of, value_of
from router_ext.ledger.opening import KEPT_DAYS
from router_ext.ledger.spending import spending
from router_ext.model.ledger import Key, Part, Row, united
from router_ext.model.secret import Secret
from router_ext.model.shared import SpendTold
from router_ext.ports import LedgerError
from router_ext.redis_client import redis_client

PUSH_S: Final = 0.5
"""Rest between two pushes: what was booked is in Redis within a second. A server that died is missed as soon."""

BATCH: Final = 500
"""Parts of one push: a script of about 2 ms, in which the server does nothing else. 40,000 parts, which is more than a
year of 100 rows a day, take 0.45 s, 0.3 s of it the CPU of this process.
"""

READ_S: Final = 1.0
"""How long a look at the days of a period may take, below the 2 s after which a supervisor takes a worker for away. A
month of 31,000 parts takes 0.7 s, one of 3,100 a tenth of it.
"""

FINISH_S: Final = 2.0
"""How long the last push may take."""

FIRST_DELAY_S: Final = 0.1
MAX_DELAY_S: Final = 2.0
"""Rests before a new connection: doubled with each failure in a row, for ever."""

_AWAY: Final = (RedisError, OSError, TimeoutError)
_FAILED: Final = (*_AWAY, LedgerError)

_PUSH: Final = """
local function calls(value) return tonumber(string.match(value or '', '^%[(%d+)')) or -1 end
for i = 2, #ARGV, 2 do
  if calls(redis.call('HGET', KEYS[1], ARGV[i])) < calls(ARGV[i + 1]) then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  end
end
redis.call('EXPIREAT', KEYS[1], ARGV[1])
"""
"""Of the hash, when it expires, and fields with their values; a field that has as many calls or more stays."""


class Parts(Protocol):
    """A ledger on file: ``SqliteLedger``."""

    def parts(self, dates: Dates) -> list[Part]:
        """What each process booked of these days. Raises LedgerError."""
        ...

    def days(self) -> dict[date, int]:
        """The days of which there is anything, with the number of parts. Raises LedgerError."""
        ...


class LedgerTelemetry(Protocol):
    """What becomes of the ledger in Redis."""

    def ledger_shared(self, connected: bool, cause: str) -> None:
        """The connection came, or went for ``cause``."""
        ...

    def ledger_unpushed(self, rows: int) -> None:
        """So many rows are not confirmed."""
        ...


class RedisLedger:
    """This router's ledger among those of all. Used from one event loop, on which ``run`` has to run.

    ``url`` is as in ``shared.bus.RedisBus``; the keys are ``{prefix}:ledger:YYYY-MM-DD``. ``router`` is the id of this
    process in ``ledger``. ``timeout_s`` bounds connecting and each push. Raises LedgerError.
    """

    def __init__(
        self,
        url: Secret,
        ledger: Parts,
        telemetry: LedgerTelemetry,
        *,
        router: str,
        timeout_s: float = 0.5,
        prefix: str = "router_ext",
    ) -> None:
        self._url = url
        self._ledger = ledger
        self._telemetry = telemetry
        self._router = router
        self._timeout_s = timeout_s
        self._prefix = prefix
        self._numbers = count()
        self._changed: dict[Key, int] = {}
        self._days = ledger.days()
        self._connected: bool | None = None

    def changed(self, key: Key) -> None:
        """This process booked to ``key``."""
        # A number of its own each time: a push confirms what it has read, and nothing later.
        self._changed[key] = next(self._numbers)

    async def run(self, apply: Callable[[SpendTold], None], today: Callable[[], date]) -> None:
        """Pushes what changes, until it is cancelled; at each connection all days on file, the newest first. ``apply``
        is called with what Redis knows of other processes' spending on the day that ``today`` says.
        """
        delay_s = FIRST_DELAY_S
        while True:
            cause = "stopped"
            try:
                await self._connect_and_push(apply, today)
            except _FAILED as error:
                cause = type(error).__name__
                delay_s = FIRST_DELAY_S if self._connected else min(MAX_DELAY_S, 2 * delay_s)
            finally:
                self._tell_connected(False, cause)
                self._tell_unpushed()
            await asyncio.sleep(delay_s)

    async def finish(self) -> None:
        """Pushes for the last time: the file may go with its pod. What fails is left to the next process with it."""
        with contextlib.suppress(*_FAILED):
            async with asyncio.timeout(FINISH_S), self._connection() as client:
                await self._push_changed(client)
                while self._days:
                    await self._push_newest_day(client)

    async def rows(self, dates: Dates) -> list[Row] | None:
        """What all routers booked on these days, one row for each key, in the order of the keys; None when Redis does
        not tell within ``READ_S``. Raises LedgerError.
        """
        parts: list[Part] = []
        try:
            async with asyncio.timeout(READ_S), self._connection() as client:
                # Day by day: a whole month at once could hold up the event loop.
                for day in _each(dates):
                    parts += await self._told(client, day)
                    parts += self._ledger.parts(Dates(day, day))
        except _AWAY:
            return None
        return united(parts)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Redis]:
        """One connection. When it breaks that is an error: a pool would make another one and say nothing."""
        async with redis_client(self._url, "the ledger", max_connections=1) as pool:
            client = pool.client()
            try:
                async with asyncio.timeout(self._timeout_s):
                    await client.initialize()
                yield client
            finally:
                await client.aclose()

    async def _connect_and_push(self, apply: Callable[[SpendTold], None], today: Callable[[], date]) -> None:
        async with self._connection() as client:
            await self._learn(client, apply, today())
            self._days = self._ledger.days()
            self._tell_connected(True, "")
            while True:
                await self._push_changed(client)
                if self._days:
                    await self._push_newest_day(client)
                self._tell_unpushed()
                if not self._days:
                    await asyncio.sleep(PUSH_S)
                    await self._command(client, "PING")

    async def _learn(self, client: Redis, apply: Callable[[SpendTold], None], today: date) -> None:
        parts = await self._told(client, today)
        for told in spending(today, (part for part in parts if part.router != self._router)):
            apply(told)

    async def _push_changed(self, client: Redis) -> None:
        changed = dict(self._changed)
        for day in {key.day for key in changed}:
            parts = self._ledger.parts(Dates(day, day))
            await self._push(client, day, [part for part in parts if self._is_own(part) and part.row.key in changed])
        for key, number in changed.items():
            if self._changed.get(key) == number:
                del self._changed[key]

    async def _push_newest_day(self, client: Redis) -> None:
        day = max(self._days)
        await self._push(client, day, self._ledger.parts(Dates(day, day)))
        self._days.pop(day, None)

    async def _push(self, client: Redis, day: date, parts: Sequence[Part]) -> None:
        for first in range(0, len(parts), BATCH):
            fields = [text for part in parts[first : first + BATCH] for text in (name_of(part), value_of(part))]
            await self._command(client, "EVAL", _PUSH, 1, self._key(day), _expires_at(day), *fields)

    async def _told(self, client: Redis, day: date) -> list[Part]:
        found: dict[bytes, bytes] = await self._command(client, "HGETALL", self._key(day))
        parts = (part_of(day, name, value) for name, value in found.items())
        return [part for part in parts if part is not None]

    async def _command(self, client: Redis, *words: bytes | str | int) -> Any:
        async with asyncio.timeout(self._timeout_s):
            return await client.execute_command(*words)  # type: ignore[no-untyped-call]

    def _key(self, day: date) -> str:
        return f"{self._prefix}:ledger:{day.isoformat()}"

    def _is_own(self, part: Part) -> bool:
        return part.router == self._router

    def _tell_connected(self, connected: bool, cause: str) -> None:
        """Tells of changes, and of a first attempt that failed."""
        if connected is not self._connected:
            self._connected = connected
            self._telemetry.ledger_shared(connected, cause)

    def _tell_unpushed(self) -> None:
        self._telemetry.ledger_unpushed(sum(self._days.values()) + len(self._changed))


def _each(dates: Dates) -> list[date]:
    return [dates.first + timedelta(days=number) for number in range((dates.last - dates.first).days + 1)]


def _expires_at(day: date) -> int:
    """Seconds since the epoch: a day that is ``KEPT_DAYS`` old is kept to its end, as on file."""
    return int(datetime.combine(day + timedelta(days=KEPT_DAYS + 1), time(), UTC).timestamp())
