"""The ledgers of several routers on one server: nothing is lost, nothing counts twice. Real files, a real server."""

import asyncio
import secrets
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from router_ext.costs.days import Dates
from router_ext.ledger import redis as ledger_redis
from router_ext.ledger.fields import name_of, value_of
from router_ext.ledger.redis import BATCH, PUSH_S, RedisLedger
from router_ext.ledger.soon import FlushedSoon
from router_ext.ledger.sqlite import SqliteLedger
from router_ext.model.ledger import Part, Row
from router_ext.model.secret import Secret
from router_ext.model.shared import SpendTold
from tests.contract.test_shared_bus import until
from tests.fakes.ledger import TODAY, USAGE, key, row
from tests.fakes.valkey_server import ValkeyServer, valkey_server

YESTERDAY = TODAY - timedelta(days=1)
BOTH = Dates(YESTERDAY, TODAY)


@dataclass(slots=True)
class Told:
    """What a ledger said of its connection and of what waits."""

    connections: list[tuple[bool, str]] = field(default_factory=list)
    unpushed: list[int] = field(default_factory=list)

    def ledger_shared(self, connected: bool, cause: str) -> None:
        """Kept."""
        self.connections.append((connected, cause))

    def ledger_unpushed(self, rows: int) -> None:
        """Kept."""
        self.unpushed.append(rows)


@dataclass(slots=True)
class Router:
    """A router's ledger on file and among those of all."""

    shared: RedisLedger
    booking: FlushedSoon
    told: Told
    heard: list[SpendTold] = field(default_factory=list)

    def book(self, *services: str, day: date = TODAY) -> None:
        """A call of 10 micro-dollars for each."""
        for service in services:
            self.booking.book(key(service, day=day), USAGE, 10, estimated=False)

    async def until_pushed(self) -> None:
        """Returns when the server has confirmed all that was booked before."""
        await until(lambda: bool(self.told.unpushed))
        self.told.unpushed.clear()
        await until(lambda: self.told.unpushed[-1:] == [0])

    async def until_connected(self, connected: bool) -> None:
        """Returns when it said so last."""
        await until(lambda: bool(self.told.connections) and self.told.connections[-1][0] is connected)


@dataclass(frozen=True, slots=True)
class Place:
    """A server, and the keys and files of one test."""

    server: ValkeyServer
    prefix: str
    folder: Path
    url: Secret

    @asynccontextmanager
    async def router(self, name: str, file: str = "", *, runs: bool = True) -> AsyncIterator[Router]:
        """A process with the id ``name``. It ends as by ``kill -9``: nothing is pushed for the last time."""
        path = self.folder / (file or name) / "ledger.sqlite"
        ledger = SqliteLedger(path, router=name, today=TODAY)
        told = Told()
        shared = RedisLedger(self.url, ledger, told, router=name, prefix=self.prefix)
        made = Router(shared, FlushedSoon(ledger, lambda _: None, shared.changed), told)
        running = asyncio.create_task(shared.run(made.heard.append, lambda: TODAY)) if runs else None
        try:
            yield made
            assert running is None or not running.done()
        finally:
            if running is not None:
                running.cancel()
                await asyncio.wait((running,))
            ledger.close()

    def key(self, day: date) -> str:
        """Of a day's hash."""
        return f"{self.prefix}:ledger:{day.isoformat()}"

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Redis]:
        """Somebody else on the server."""
        client = Redis.from_url(self.server.url.reveal())
        try:
            yield client
        finally:
            await client.aclose()

    async def fields(self, day: date = TODAY) -> dict[bytes, bytes]:
        """A day's hash."""
        async with self.client() as client:
            found: dict[bytes, bytes] = await client.execute_command("HGETALL", self.key(day))  # type: ignore[no-untyped-call]
            return found


@pytest.fixture
def place(server: ValkeyServer, tmp_path: Path) -> Place:
    """On the server of all tests."""
    return Place(server, secrets.token_hex(8), tmp_path, server.url)


@pytest.fixture
def own_place(tmp_path: Path) -> Iterator[Place]:
    """On a server that the test may kill, which keeps nothing over that."""
    with valkey_server() as running:
        yield Place(running, "router_ext", tmp_path, running.url)


async def test_costs_are_the_sum_of_all_routers_at_each_of_them(place: Place) -> None:
    """By key, in the order of the keys; of the days that are asked for."""
    async with place.router("one") as one, place.router("two") as two:
        one.book("shop", "blog")
        one.book("shop", day=YESTERDAY)
        two.book("shop", "shop")
        for router in (one, two):
            await router.until_pushed()
        for router in (one, two):
            assert await router.shared.rows(Dates(TODAY, TODAY)) == [row(key("blog"), 1, 10), row(key("shop"), 3, 30)]
            assert await router.shared.rows(BOTH) == [
                row(key("shop", day=YESTERDAY), 1, 10),
                row(key("blog"), 1, 10),
                row(key("shop"), 3, 30),
            ]


async def test_what_is_booked_counts_here_before_it_is_pushed(place: Place) -> None:
    """And only once when it is."""
    async with place.router("one", runs=False) as one:
        one.book("shop")
        assert await one.shared.rows(BOTH) == [row(key(), 1, 10)]
        await one.shared.finish()
        one.book("shop")
        assert await one.shared.rows(BOTH) == [row(key(), 2, 20)]


async def test_a_booking_is_pushed_within_a_second(place: Place) -> None:
    """Half of that is the rest between two pushes; more calls change the same field."""
    assert PUSH_S == 0.5
    async with place.router("one") as one:
        await one.until_pushed()
        for calls in (1, 2):
            one.book("shop")
            async with asyncio.timeout(1.0):
                while await place.fields() != _fields(Part("one", row(key(), calls, 10 * calls))):  # noqa: ASYNC110 - no event
                    await asyncio.sleep(0.01)


async def test_pushing_again_changes_nothing(place: Place) -> None:
    """Each connection begins with everything on file."""
    async with place.router("one", "file") as one:
        one.book("shop", "blog")
        await one.until_pushed()
        before = await place.fields()
    for name in ("two", "three"):
        async with place.router(name, "file") as later:
            await later.until_connected(True)
            await later.until_pushed()
            assert await place.fields() == before
            assert await later.shared.rows(BOTH) == [row(key("blog"), 1, 10), row(key("shop"), 1, 10)]


async def test_an_older_total_does_not_replace_a_newer_one(place: Place) -> None:
    """A file came back from a copy, or a power cut took its last moments: what was pushed since then stays."""
    async with place.router("one", "file") as one:
        one.book("shop")
    shutil.copytree(place.folder / "file", place.folder / "copy")
    async with place.router("one", "file") as one:
        one.book("shop")
        await one.until_pushed()
    async with place.router("two", "copy") as two:
        two.book("shop")
        await two.until_pushed()
        assert await place.fields() == _fields(Part("one", row(key(), 2, 20)), Part("two", row(key(), 1, 10)))
        assert await two.shared.rows(BOTH) == [row(key(), 3, 30)]


async def test_what_a_killed_process_did_not_push_its_successor_does(place: Place) -> None:
    """Under the id of the dead one; the file alone is needed."""
    async with place.router("dead", "file", runs=False) as dead:
        dead.book("shop")
        dead.book("shop", day=YESTERDAY)
    assert await place.fields() == {}
    async with place.router("next", "file") as successor:
        await successor.until_pushed()
    assert await place.fields() == _fields(Part("dead", row(key(), 1, 10)))
    assert await place.fields(YESTERDAY) == _fields(Part("dead", row(key(day=YESTERDAY), 1, 10)))


async def test_a_vanished_file_loses_nothing_that_was_pushed(place: Place) -> None:
    """A pod went with its disk; a finish pushes what is left of an orderly end."""
    async with place.router("gone", runs=False) as gone:
        gone.book("shop")
        await gone.shared.finish()
    shutil.rmtree(place.folder / "gone")
    async with place.router("next", "gone") as successor:
        successor.book("shop")
        await successor.until_pushed()
        assert await successor.shared.rows(BOTH) == [row(key(), 2, 20)]


async def test_a_router_that_starts_learns_what_others_spent_today(place: Place) -> None:
    """Each under its id, also of routers that are gone; not what it finds under its own, nor of other days."""
    for name in ("one", "two"):
        async with place.router(name, runs=False) as router:
            router.book("shop")
            router.book("blog", day=YESTERDAY)
            await router.shared.finish()
    async with place.router("two", "new") as two:
        await two.until_connected(True)
        assert two.heard == [SpendTold("one", TODAY, (("shop", 10),))]


async def test_a_day_expires_400_days_after_it(place: Place) -> None:
    """At the end of its last day, UTC, however often it is pushed."""
    old = datetime.now(UTC).date() - timedelta(days=400)
    async with place.router("one", runs=False) as one:
        for day in (TODAY, old):
            one.book("shop", day=day)
        await one.shared.finish()
    async with place.client() as client:
        for day in (TODAY, old):
            expected = datetime.combine(day + timedelta(days=401), datetime.min.time(), UTC).timestamp()
            assert await client.expiretime(place.key(day)) == expected


async def test_more_rows_than_one_push_takes_are_pushed_all_the_same(place: Place) -> None:
    """Here they are one more."""
    services = [f"s{number:04}" for number in range(BATCH + 1)]
    async with place.router("one") as one:
        one.book(*services)
        await one.until_pushed()
        assert await one.shared.rows(BOTH) == [row(key(service), 1, 10) for service in services]
    assert len(await place.fields()) == BATCH + 1


async def test_what_is_no_row_is_left_out(place: Place) -> None:
    """Somebody else wrote it; a push replaces it where it is in the way."""
    part = Part("one", row(key(), 1, 10))
    async with place.client() as client:
        await client.hset(place.key(TODAY), mapping={"x": "y", name_of(part): b"none"})
    async with place.router("one") as one:
        one.book("shop")
        await one.until_pushed()
        assert await one.shared.rows(BOTH) == [row(key(), 1, 10)]


class ReadAndThen:
    """Implements ``ledger.redis.Parts``: of another ledger, to which ``then`` happens right after each reading."""

    def __init__(self, ledger: SqliteLedger) -> None:
        self._ledger = ledger
        self.then: list[Callable[[], None]] = []

    def parts(self, dates: Dates) -> list[Part]:
        """As they were before ``then``, of which the next is done."""
        found = self._ledger.parts(dates)
        if self.then:
            self.then.pop()()
        return found

    def days(self) -> dict[date, int]:
        """Of the other."""
        return self._ledger.days()


async def test_a_booking_during_a_push_is_pushed_by_the_next(place: Place) -> None:
    """A push confirms what it has read, and nothing later."""
    with closing(SqliteLedger(place.folder / "ledger.sqlite", router="one", today=TODAY)) as file:
        read = ReadAndThen(file)
        shared = RedisLedger(place.url, read, Told(), router="one", prefix=place.prefix)
        booking = FlushedSoon(file, lambda _: None, shared.changed)
        booking.book(key(), USAGE, 10, estimated=False)
        read.then.append(lambda: booking.book(key(), USAGE, 10, estimated=False))
        for calls in (1, 2):
            await shared.finish()
            assert await place.fields() == _fields(Part("one", row(key(), calls, 10 * calls)))


async def test_a_user_needs_the_rights_of_the_documentation_and_no_others(place: Place) -> None:
    """As ``docs/operating.md`` has them, for keys of the ledger only."""
    rights = ["+eval", "+hget", "+hset", "+expireat", "+hgetall", "+ping"]
    async with place.client() as client:
        name = place.prefix
        keys = f"~{name}:ledger:*"
        await client.execute_command("ACL", "SETUSER", name, "reset", "on", ">secret", keys, *rights)  # type: ignore[no-untyped-call]
    url = place.server.url.reveal().replace("redis://", f"redis://{name}:secret@")
    limited = replace(place, url=Secret(url))
    async with limited.router("one") as one:
        one.book("shop")
        await one.until_connected(True)
        await one.until_pushed()
        assert await one.shared.rows(BOTH) == [row(key(), 1, 10)]
    assert await place.fields() == _fields(Part("one", row(key(), 1, 10)))


# The server is away


async def test_a_server_that_lost_everything_gets_it_again(own_place: Place) -> None:
    """Without anything new being booked, of both routers."""
    async with own_place.router("one") as one, own_place.router("two") as two:
        for router in (one, two):
            router.book("shop")
            router.book("shop", day=YESTERDAY)
            await router.until_pushed()
        own_place.server.kill()
        for router in (one, two):
            await router.until_connected(False)
        one.book("shop")
        assert await one.shared.rows(BOTH) is None
        await until(lambda: one.told.unpushed[-1] == 1)
        own_place.server.start()
        for router in (one, two):
            await router.until_connected(True)
            await router.until_pushed()
        wanted: list[Row] = [row(key(day=YESTERDAY), 2, 20), row(key(), 3, 30)]
        assert [await router.shared.rows(BOTH) for router in (one, two)] == [wanted, wanted]
        for router in (one, two):
            assert [connected for connected, _ in router.told.connections] == [True, False, True]


async def test_a_server_that_was_never_there_is_told_once_and_gets_everything_later(own_place: Place) -> None:
    """Booking does not notice; what waits is counted."""
    own_place.server.kill()
    async with own_place.router("one") as one:
        one.book("shop", "shop", "blog")
        await until(lambda: one.told.unpushed[-3:] == [2, 2, 2])
        assert [connected for connected, _ in one.told.connections] == [False]
        own_place.server.start()
        await one.until_connected(True)
        await one.until_pushed()
        assert await own_place.fields() == _fields(
            Part("one", row(key("shop"), 2, 20)), Part("one", row(key("blog"), 1, 10))
        )


async def test_a_silent_server_costs_a_deadline(own_place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes connections and answers nothing: a look and the last push end, and the run finds out."""
    monkeypatch.setattr(ledger_redis, "READ_S", 0.1)
    monkeypatch.setattr(ledger_redis, "FINISH_S", 0.1)
    async with own_place.router("one") as one:
        await one.until_connected(True)
        own_place.server.freeze()
        one.book("shop")
        async with asyncio.timeout(5.0):
            assert await one.shared.rows(BOTH) is None
            await one.shared.finish()
        await one.until_connected(False)
        own_place.server.thaw()
        await one.until_connected(True)
        await one.until_pushed()
        assert await one.shared.rows(BOTH) == [row(key(), 1, 10)]


def _fields(*parts: Part) -> dict[bytes, bytes]:
    return {name_of(part): value_of(part) for part in parts}
