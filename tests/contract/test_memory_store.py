"""What only the store in memory can show: exact times, and what a session costs."""

import gc
import tracemalloc

from router_ext.model.session import Turn
from router_ext.sessions.limits import StoreLimits
from router_ext.sessions.memory import MemoryStore

TTL_S = 60.0
LIMITS = StoreLimits(TTL_S, 10_000, 1 << 30)
NOW = 1_700_000_000.0


def store_with(evicted: list[str]) -> MemoryStore:
    """An empty store."""
    return MemoryStore(LIMITS, evicted.append)


async def test_a_session_lives_until_its_time_is_over() -> None:
    """Up to, not including, ``ttl_s`` after the last use."""
    evicted: list[str] = []
    store = store_with(evicted)
    await store.create("s", "ann", Turn((b"hi",)), NOW)
    assert await store.load("s", "ann", NOW + 59.5) is not None
    assert await store.append("s", "ann", Turn((b"more",)), NOW + 119.0)
    assert await store.load("s", "ann", NOW + 179.0) is None
    assert evicted == ["ttl"]


async def test_a_purge_needs_no_traffic() -> None:
    """Expired conversations do not stay in memory because nobody calls."""
    evicted: list[str] = []
    store = store_with(evicted)
    await store.create("old", "ann", Turn((b"hi",)), NOW)
    await store.create("new", "ann", Turn((b"hi",)), NOW + 1)
    store.purge(NOW + 59.5)
    assert await store.count() == 2
    store.purge(NOW + 60.0)
    assert [meta.id for meta in await store.listed(9)] == ["new"]
    assert evicted == ["ttl"]


async def test_a_clock_that_was_set_back_keeps_nothing_beyond_its_time() -> None:
    """The order of use is then not the order of times: such a session is gone when it is asked for."""
    evicted: list[str] = []
    store = store_with(evicted)
    await store.create("before", "ann", Turn((b"hi",)), NOW + 3600)
    await store.create("after", "ann", Turn((b"hi",)), NOW)
    assert await store.load("after", "ann", NOW + 60) is None
    assert await store.load("before", "ann", NOW + 60) is not None
    assert evicted == ["ttl"]


async def test_messages_are_shared_not_copied() -> None:
    """What is given out is what came in."""
    store = store_with([])
    message = bytes(1000)
    await store.create("s", "ann", Turn((message,)), NOW)
    session = await store.load("s", "ann", NOW)
    assert session is not None
    assert session.messages[0] is message


async def test_memory_stays_near_the_bytes_of_the_messages() -> None:
    """500 sessions of 10 turns with 2 messages of 1 KB: less than 1.2 times their 10 MB."""
    gc.collect()
    tracemalloc.start()
    store = store_with([])
    for number in range(500):
        await store.create(f"s-{number}", "ann", Turn((bytes(1000), bytes(1000))), NOW)
        for _ in range(9):
            await store.append(f"s-{number}", "ann", Turn((bytes(1000), bytes(1000))), NOW)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 1.2 * 500 * 20 * 1000
