"""What only a store on a server can show: its failures, other clients, and what lies in it."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from redis.asyncio import Redis

from router_ext.model.secret import Secret
from router_ext.model.session import Turn
from router_ext.ports import SessionStoreError
from router_ext.sessions.limits import StoreLimits
from router_ext.sessions.redis import RedisStore
from tests.contract.kinds import KEY, OTHER_KEY, POLL_S, ROOMY, Bench, RedisKind
from tests.fakes.valkey_server import ValkeyServer, valkey_server

PLAIN = b'{"role":"user","content":"the secret plan"}'
LONG = b'{"role":"user","content":"' + b"the secret plan, " * 1000 + b'"}'
DEADLINE_S = 0.5
SLACK_S = 0.4
"""What a loaded machine may take beyond a deadline."""


def ignored(reason: str) -> None:
    """Evictions that a test does not look at."""


@pytest.fixture
def own_server() -> Iterator[ValkeyServer]:
    """A server that the test may kill."""
    with valkey_server() as running:
        yield running


@asynccontextmanager
async def raw(server: ValkeyServer) -> AsyncIterator[Redis]:
    """A client without a store."""
    async with Redis.from_url(server.url.reveal(), protocol=2) as client:
        yield client


async def assert_away(bench: Bench) -> None:
    """Every call says so, within its deadline."""
    store, turn = bench.store, Turn((PLAIN,))
    for call in (
        lambda: store.create("t", "ann", turn, 1.0),
        lambda: store.load("s", "ann", 1.0),
        lambda: store.append("s", "ann", turn, 1.0),
        lambda: store.delete("s"),
        lambda: store.listed(9),
        store.count,
    ):
        began = time.monotonic()
        with pytest.raises(SessionStoreError):
            await call()
        assert time.monotonic() - began < DEADLINE_S + SLACK_S


async def until_back(bench: Bench) -> None:
    """Polls until the store answers again."""
    async with asyncio.timeout(10):
        while True:
            try:
                await bench.store.count()
            except SessionStoreError:
                await asyncio.sleep(POLL_S)
            else:
                return


async def test_a_killed_server_is_an_error_at_once_and_comes_back(own_server: ValkeyServer) -> None:
    """No call hangs; after the restart the same store works, with what the server still has: nothing."""
    async with RedisKind(own_server)(timeout_s=DEADLINE_S) as bench:
        await bench.create("s", PLAIN)
        own_server.kill()
        await assert_away(bench)
        own_server.start()
        assert await bench.messages("s") is None
        await bench.create("s", PLAIN)
        assert await bench.messages("s") == (PLAIN,)


async def test_a_restart_between_two_calls_goes_unnoticed(own_server: ValkeyServer) -> None:
    """A connection that the server closed meanwhile is not used."""
    async with RedisKind(own_server)(timeout_s=DEADLINE_S) as bench:
        await asyncio.gather(*(bench.create(f"s-{number}", PLAIN) for number in range(20)))
        own_server.kill()
        await asyncio.to_thread(own_server.start)
        await asyncio.gather(*(bench.create(f"s-{number}", PLAIN) for number in range(20)))
        assert await bench.store.count() == 20


async def test_a_silent_server_is_an_error_within_the_deadline(own_server: ValkeyServer) -> None:
    """It takes connections and does not answer; when it goes on, so does the store."""
    async with RedisKind(own_server)(timeout_s=DEADLINE_S) as bench:
        await bench.create("s", PLAIN)
        own_server.freeze()
        await assert_away(bench)
        own_server.thaw()
        await until_back(bench)
        assert (await bench.messages("s") or ())[0] == PLAIN


async def test_waiting_for_a_connection_counts(own_server: ValkeyServer) -> None:
    """More calls than connections, all to a silent server: each ends within one deadline."""
    async with RedisKind(own_server)(timeout_s=DEADLINE_S) as bench:
        await bench.create("s", PLAIN)
        own_server.freeze()
        began = time.monotonic()
        results = await asyncio.gather(*(bench.messages("s") for _ in range(100)), return_exceptions=True)
        assert time.monotonic() - began < DEADLINE_S + SLACK_S
        assert {type(result) for result in results} == {SessionStoreError}
        own_server.thaw()
        await until_back(bench)
        assert await asyncio.gather(*(bench.messages("s") for _ in range(100))) == [(PLAIN,)] * 100


async def test_a_server_that_never_was_is_an_error() -> None:
    """A store can be made before its server is there."""
    store = RedisStore(Secret("redis://127.0.0.1:1/0"), ROOMY, ignored, timeout_s=DEADLINE_S)
    with pytest.raises(SessionStoreError):
        await store.count()
    await store.close()


async def test_an_abandoned_call_gives_its_answer_to_nobody(server: ValkeyServer) -> None:
    """Calls cancelled at any point leave no answer behind that the next caller would get for its own."""
    async with RedisKind(server)() as bench:
        for name in ("a", "b"):
            await bench.create(name, name.encode() * 100_000)
        for turn in range(100):
            call = asyncio.create_task(bench.messages("a"))
            for _ in range(turn % 25):
                await asyncio.sleep(0)
            call.cancel()
            assert await bench.messages("b") == (b"b" * 100_000,)


async def test_an_answer_for_another_session_is_refused(server: ValkeyServer) -> None:
    """Should a client library ever mix up answers: an error, not somebody's conversation."""
    async with RedisKind(server)() as bench, raw(server) as client:
        await bench.create("a", PLAIN)
        await bench.create("b", PLAIN)
        await client.hset(key_of(bench, "s:b"), "id", "a")
        with pytest.raises(SessionStoreError):
            await bench.messages("b")


async def test_two_clients_see_each_other(server: ValkeyServer) -> None:
    """Sessions, turns and destruction; a session that one of them gives up is reported once."""
    first_evicted: list[str] = []
    second_evicted: list[str] = []
    few = StoreLimits(60.0, 2, 1 << 20)
    first = RedisKind(server).store(few, first_evicted.append, prefix="shared")
    second = RedisKind(server).store(few, second_evicted.append, prefix="shared")
    await first.create("s", "ann", Turn((b"1",)), 1.0)
    assert await second.append("s", "ann", Turn((b"2",)), 2.0)
    session = await first.load("s", "ann", 3.0)
    assert session is not None
    assert session.messages == (b"1", b"2")
    assert await second.delete("s")
    assert await first.load("s", "ann", 3.0) is None
    for store, name in ((first, "a"), (second, "b"), (first, "c")):
        await store.create(name, "ann", Turn((b"1",)), 1.0)
    assert (first_evicted, second_evicted) == (["max_sessions"], [])
    await first.close()
    await second.close()


async def test_turns_of_two_clients_are_whole(server: ValkeyServer) -> None:
    """Each adds fifty turns at the same time."""
    async with RedisKind(server)() as bench:
        other = RedisStore(server.url, ROOMY, ignored, timeout_s=5.0, prefix=store_of(bench).prefix)
        await bench.create("s")
        turns = [(b"%d" % number, b"-%d" % number) for number in range(100)]
        stores = (bench.store, other) * 50
        adding = (store.append("s", "ann", Turn(turn), 1.0) for store, turn in zip(stores, turns, strict=True))
        assert all(await asyncio.gather(*adding))
        found = await bench.messages("s") or ()
        assert sorted(zip(*[iter(found)] * 2, strict=True)) == sorted(turns)
        await other.close()


def store_of(bench: Bench) -> RedisStore:
    """The store under test."""
    assert isinstance(bench.store, RedisStore)
    return bench.store


def key_of(bench: Bench, rest: str) -> str:
    """A key of the store under test."""
    return f"{{{store_of(bench).prefix}}}:{rest}"


async def stored(server: ValkeyServer, bench: Bench) -> list[bytes]:
    """Every message of the session ``s`` as it lies in the server."""
    async with raw(server) as client:
        blobs = await client.lrange(key_of(bench, "s:s:m"), 0, -1)
        return [blob for blob in blobs if isinstance(blob, bytes)]


async def test_long_messages_are_compressed(server: ValkeyServer) -> None:
    """Text to a fraction; short ones and what does not shrink grow by one byte."""
    async with RedisKind(server)() as bench:
        await bench.create("s", PLAIN, LONG)
        short, long = await stored(server, bench)
    assert short == b"\x00" + PLAIN
    assert len(long) < len(LONG) / 100


async def test_with_a_key_the_server_holds_no_text(server: ValkeyServer) -> None:
    """Nor is one message the same twice, and long ones are still compressed."""
    async with RedisKind(server, KEY)() as bench:
        await bench.create("s", PLAIN, PLAIN, LONG)
        blobs = await stored(server, bench)
        assert await bench.messages("s") == (PLAIN, PLAIN, LONG)
    assert not any(word in blob for blob in blobs for word in (b"secret", b"role", b"user"))
    assert blobs[0] != blobs[1]
    assert len(blobs[2]) < len(LONG) / 50


@pytest.mark.parametrize(("written", "read"), [(KEY, OTHER_KEY), (KEY, None), (None, KEY)])
async def test_another_key_is_an_error_not_a_garbled_conversation(
    server: ValkeyServer, written: Secret | None, read: Secret | None
) -> None:
    """Also without a key, and for messages that were not sealed although there is one."""
    async with RedisKind(server, written)() as bench:
        await bench.create("s", PLAIN, LONG)
        other = RedisKind(server, read).store(ROOMY, ignored, prefix=store_of(bench).prefix)
        with pytest.raises(SessionStoreError):
            await other.load("s", "ann", 1.0)
        await other.close()


async def test_a_sealed_message_opens_in_its_own_session_only(server: ValkeyServer) -> None:
    """Whoever can write to the server cannot move a conversation to another session."""
    async with RedisKind(server, KEY)() as bench, raw(server) as client:
        await bench.create("a", PLAIN)
        await bench.create("b", PLAIN)
        await client.copy(key_of(bench, "s:a:m"), key_of(bench, "s:b:m"), replace=True)
        with pytest.raises(SessionStoreError):
            await bench.messages("b")


@pytest.mark.parametrize("whole", [True, False])
async def test_a_session_that_lost_messages_is_gone(server: ValkeyServer, whole: bool) -> None:
    """A server short of memory may drop a list and keep the rest: half a conversation never reaches a model."""
    async with RedisKind(server)() as bench, raw(server) as client:
        await bench.create("s", PLAIN, PLAIN)
        await client.ltrim(key_of(bench, "s:s:m"), 1, 0 if whole else -1)
        assert await bench.messages("s") is None
        assert not await bench.append("s", PLAIN)
        assert await bench.store.count() == 0
        assert bench.evicted == ["lost"]


async def test_nothing_is_left_of_a_session(server: ValkeyServer) -> None:
    """Neither of one that was destroyed nor of one that expired; what is there has a time to live."""
    async with RedisKind(server)(StoreLimits(1.0, 10, 1 << 20)) as bench, raw(server) as client:
        await bench.create("destroyed", PLAIN)
        await bench.create("expired", PLAIN)
        for key in ("s:expired", "s:expired:m"):
            assert 0 < await client.pttl(key_of(bench, key)) <= 1000
        await bench.store.delete("destroyed")
        await bench.until_count(0)
        total = key_of(bench, "bytes")
        assert [key async for key in client.scan_iter(key_of(bench, "*"))] == [total.encode()]
        assert await client.get(total) == b"0"


@pytest.mark.parametrize(
    "url", ["", "http://h", "redis://:pass/word@h:1", "redis://h:port", "redis://:password@h/0?no_such_option=1"]
)
def test_a_bad_url_is_refused_unseen(url: str) -> None:
    """The message says where it came from; no part of a password is in it."""
    with pytest.raises(ValueError, match=r"URL of the session store \(env:STORE\)") as caught:
        RedisStore(Secret(url, "env:STORE"), ROOMY, ignored)
    assert "pass" not in str(caught.value)
    assert caught.value.__cause__ is None
