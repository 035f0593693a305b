"""What every implementation of ``ports.SessionStore`` keeps to."""

import asyncio

import pytest

from router_ext.model.session import Session, SessionMeta, Turn
from router_ext.ports import SessionStoreError
from router_ext.sessions.limits import StoreLimits
from tests.contract.kinds import Kind

HI = b'{"role":"user","content":"hi"}'
HELLO = b'{"role":"assistant","content":"hello"}'
MORE = b'{"role":"user","content":"more"}'


def limits(ttl_s: float = 60.0, max_sessions: int = 1000, max_bytes: int = 1 << 30) -> StoreLimits:
    """Roomy unless told otherwise."""
    return StoreLimits(ttl_s, max_sessions, max_bytes)


async def test_a_session_is_loaded_as_it_was_kept(kind: Kind) -> None:
    """Messages byte for byte and in order; turns, tokens, sizes and both times."""
    async with kind() as bench:
        await bench.store.create("s", "ann", Turn((HI, HELLO), 17), 1000.25)
        assert await bench.store.append("s", "ann", Turn((MORE,), 40), 1001.5)
        meta = SessionMeta("s", "ann", 1000.25, 1002.75, turns=2, tokens=40, bytes=100)
        assert await bench.store.load("s", "ann", 1002.75) == Session(meta, (HI, HELLO, MORE))


async def test_unknown_tokens_are_estimated(kind: Kind) -> None:
    """A known size of the context replaces the count, an estimate is added to it."""
    async with kind() as bench:
        counts = []
        await bench.store.create("s", "ann", Turn((HI,), None, 5), bench.now_s)
        for turn in (Turn((HI,), None, 7), Turn((HI,), 100, 7), Turn((HI,), 0, 7), Turn((HI,), None, 1)):
            counts += [meta.tokens for meta in await bench.store.listed(1)]
            await bench.store.append("s", "ann", turn, bench.now_s)
        counts += [meta.tokens for meta in await bench.store.listed(1)]
    assert counts == [5, 12, 100, 0, 1]


async def test_an_unknown_session_is_nowhere(kind: Kind) -> None:
    """No call creates it."""
    async with kind() as bench:
        assert await bench.messages("s") is None
        assert not await bench.append("s", HI)
        assert not await bench.store.delete("s")
        assert await bench.store.count() == 0
        assert await bench.ids() == []


async def test_for_another_owner_a_session_does_not_exist(kind: Kind) -> None:
    """Reading, adding and destroying answer as for an unknown id, and leave the session and its order of use alone."""
    async with kind() as bench:
        await bench.create("s", HI)
        await bench.create("later", HI)
        assert await bench.messages("s", owner="bob") is None
        assert not await bench.append("s", MORE, owner="bob")
        assert not await bench.store.delete("s", "bob")
        assert await bench.ids() == ["later", "s"]
        assert await bench.messages("s") == (HI,)


async def test_an_id_of_another_owner_cannot_be_taken_over(kind: Kind) -> None:
    """Ids are random, so it is a fault; the first owner loses nothing."""
    async with kind() as bench:
        await bench.create("s", HI)
        with pytest.raises(SessionStoreError):
            await bench.create("s", MORE, owner="bob")
        assert await bench.messages("s") == (HI,)
        assert await bench.messages("s", owner="bob") is None


async def test_a_repeated_create_starts_anew(kind: Kind) -> None:
    """The first one may have timed out after it was carried out: its messages are not there twice."""
    async with kind() as bench:
        await bench.create("s", HI, HELLO)
        await bench.create("s", MORE)
        assert await bench.messages("s") == (MORE,)
        assert [meta.bytes for meta in await bench.store.listed(9)] == [32]
        assert bench.evicted == []


async def test_whether_a_session_is_there_is_no_use_of_it(kind: Kind) -> None:
    """Whoever owns it; the order of use stays."""
    async with kind() as bench:
        await bench.create("s", HI)
        await bench.create("later", HI)
        assert await bench.store.holds("s")
        assert not await bench.store.holds("another")
        assert await bench.ids() == ["later", "s"]
        await bench.store.delete("s")
        assert not await bench.store.holds("s")


@pytest.mark.parametrize("owner", ["ann", None])
async def test_a_destroyed_session_stays_gone(kind: Kind, owner: str | None) -> None:
    """By its owner or by the operator; a turn that comes late does not bring it back."""
    async with kind() as bench:
        await bench.create("s", HI)
        assert await bench.store.delete("s", owner)
        assert not await bench.store.delete("s", owner)
        assert not await bench.append("s", MORE)
        assert await bench.messages("s") is None
        assert await bench.store.count() == 0
        assert bench.evicted == []


async def test_the_list_begins_with_the_latest_use(kind: Kind) -> None:
    """Creating, reading and adding are uses. No more than asked for."""
    async with kind() as bench:
        for name in ("a", "b", "c"):
            await bench.create(name, HI)
        await bench.messages("a")
        await bench.append("b", MORE)
        assert await bench.ids() == ["b", "a", "c"]
        assert [meta.id for meta in await bench.store.listed(2)] == ["b", "a"]
        assert await bench.store.listed(0) == []
        assert await bench.store.count() == 3


ODD = (b"", b"\x00", b"\xff\xfe\x80", b"\x01\x02", b"\r\n$5\r\n", '{"content":"\u2028é😀"}'.encode(), b'"\\ud800"')


async def test_any_bytes_come_back(kind: Kind) -> None:
    """Empty, not UTF-8, or looking like the store's own marks."""
    async with kind() as bench:
        await bench.create("s", *ODD)
        assert await bench.append("s")
        assert await bench.append("s", *reversed(ODD))
        assert await bench.messages("s") == (*ODD, *reversed(ODD))


@pytest.mark.parametrize("size", [1023, 1024, 1 << 20])
async def test_long_messages_come_back(kind: Kind, size: int) -> None:
    """Those that compress and those that do not; both sides of the length from which it is tried."""
    zeros, noise = bytes(size), b"".join(number.to_bytes(3, "big") for number in range(size // 3 + 1))[:size]
    async with kind() as bench:
        await bench.create("s", zeros, noise)
        assert await bench.messages("s") == (zeros, noise)
        assert [meta.bytes for meta in await bench.store.listed(1)] == [2 * size]


async def test_thousands_of_messages_come_at_once(kind: Kind) -> None:
    """As with a long conversation whose first turn a client brings itself."""
    many = tuple(b"%d" % number for number in range(20_001))
    async with kind() as bench:
        await bench.create("s", *many)
        assert await bench.append("s", *many)
        assert await bench.messages("s") == many + many


async def test_concurrent_turns_are_whole(kind: Kind) -> None:
    """Fifty at once: none is lost, doubled or mixed with another."""
    async with kind() as bench:
        await bench.create("s")
        turns = [tuple(b"%d-%d" % (turn, part) for part in range(5)) for turn in range(50)]
        assert all(await asyncio.gather(*(bench.append("s", *turn) for turn in turns)))
        found = await bench.messages("s") or ()
        assert sorted(zip(*[iter(found)] * 5, strict=True)) == sorted(turns)
        (meta,) = await bench.store.listed(1)
        assert (meta.turns, meta.bytes) == (51, sum(map(len, found)))


async def test_a_session_expires_after_its_last_use(kind: Kind) -> None:
    """It is gone for every call, counted once, and a late turn does not bring it back."""
    async with kind(limits(ttl_s=0.2)) as bench:
        await bench.create("s", HI)
        await bench.until_count(0)
        assert await bench.messages("s") is None
        assert not await bench.append("s", MORE)
        assert not await bench.store.delete("s")
        assert await bench.ids() == []
        assert bench.evicted == ["ttl"]


async def test_many_sessions_expire_at_once(kind: Kind) -> None:
    """None is seen any more, and each is counted, even when they are not forgotten in one call."""
    async with kind(limits(ttl_s=0.2)) as bench:
        for number in range(250):
            await bench.create(f"s-{number}", HI)
        await bench.until_count(0)
        assert await bench.ids() == []
        for _ in range(3):
            assert await bench.store.count() == 0
        assert bench.evicted == ["ttl"] * 250


@pytest.mark.parametrize("use", ["load", "append"])
async def test_every_use_begins_the_time_to_live_anew(kind: Kind, use: str) -> None:
    """A session that is used outlives one that is made later and is not; listing is no use."""
    async with kind(limits(ttl_s=1.0)) as bench:
        await bench.create("used", HI)
        await bench.create("unused", HI)
        while "unused" in await bench.ids():
            assert await (bench.messages("used") if use == "load" else bench.append("used", MORE))
            await bench.pause()
        assert await bench.ids() == ["used"]
        assert bench.evicted == ["ttl"]


async def test_the_least_recently_used_session_makes_room(kind: Kind) -> None:
    """As many as the limit stay; of one more, that whose last use is oldest goes."""
    async with kind(limits(max_sessions=3)) as bench:
        for name in ("a", "b", "c"):
            await bench.create(name, HI)
        await bench.messages("a")
        assert bench.evicted == []
        await bench.create("d", HI)
        assert await bench.ids() == ["d", "a", "c"]
        assert bench.evicted == ["max_sessions"]
        assert await bench.messages("b") is None


async def test_the_store_holds_its_bytes_to_the_last(kind: Kind) -> None:
    """A sum equal to the limit fits, one byte more costs the session that was used longest ago."""
    async with kind(limits(max_bytes=100)) as bench:
        await bench.create("a", bytes(40))
        await bench.create("b", bytes(40))
        assert await bench.append("b", bytes(20))
        assert (await bench.ids(), bench.evicted) == (["b", "a"], [])
        assert await bench.append("b", b"!")
        assert (await bench.ids(), bench.evicted) == (["b"], ["max_bytes"])


async def test_several_sessions_make_room_for_a_large_one(kind: Kind) -> None:
    """As many as it takes, and each is counted."""
    async with kind(limits(max_bytes=100)) as bench:
        for name in ("a", "b", "c", "d"):
            await bench.create(name, bytes(25))
        await bench.create("large", bytes(60))
        assert await bench.ids() == ["large", "d"]
        assert bench.evicted == ["max_bytes"] * 3


async def test_a_session_alone_too_large_is_not_kept(kind: Kind) -> None:
    """It goes, and no other makes room for it in vain."""
    async with kind(limits(max_bytes=100)) as bench:
        await bench.create("a", bytes(30))
        await bench.create("huge", bytes(101))
        assert (await bench.ids(), bench.evicted) == (["a"], ["max_bytes"])
        await bench.create("b", bytes(70))
        assert not await bench.append("b", bytes(31))
        assert (await bench.ids(), bench.evicted) == (["a"], ["max_bytes", "max_bytes"])
        await bench.create("whole", bytes(100))
        assert await bench.ids() == ["whole"]


async def test_what_is_destroyed_leaves_its_room(kind: Kind) -> None:
    """Bytes are given back by every way in which a session ends."""
    async with kind(limits(max_bytes=100, ttl_s=1.0)) as bench:
        for number in range(5):
            await bench.create(f"s-{number}", bytes(100))
            assert await bench.store.delete(f"s-{number}")
        await bench.create("expires", bytes(100))
        await bench.until_count(0)
        await bench.create("a", bytes(50))
        await bench.create("a", bytes(60))
        await bench.create("b", bytes(40))
        assert await bench.ids() == ["b", "a"]
        assert bench.evicted == ["ttl"]


async def test_a_session_that_is_peeked_at_does_not_count_as_used(kind: Kind) -> None:
    """It is read as it was kept, and is the first to make room as before; for another owner it does not exist."""
    async with kind(limits(max_sessions=2)) as bench:
        await bench.create("old", HI)
        await bench.create("new", HI)
        before = await bench.store.listed(2)
        peeked = await bench.store.peek("old", "ann", bench.now_s + 5)
        assert peeked is not None
        assert peeked == Session(before[1], (HI,))
        assert await bench.store.peek("old", "bob", bench.now_s) is None
        assert await bench.store.peek("unknown", "ann", bench.now_s) is None
        assert await bench.store.listed(2) == before
        await bench.create("newest", HI)
        assert await bench.ids() == ["newest", "new"]
