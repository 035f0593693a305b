"""What bounds failover: a budget of retries, and of memory for the requests that could be sent once more."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from router_ext.engine.limits import MAX_KEPT_BYTES, KeptBytes, RetryBudget
from router_ext.stream.events import ResponseHeaders
from tests.fakes.dispatcher import CannedAnswer
from tests.fakes.domain import head
from tests.fakes.rig import BODY, EngineRig
from tests.unit.engine.relays import STREAM, Told, begun, failing, give_up, relayed, settled, silent, trio

# The retry budget


@pytest.mark.parametrize(
    ("open_requests", "retries"),
    [(0, 10), (1, 10), (50, 10), (54, 10), (55, 11), (59, 11), (60, 12), (1000, 200)],
)
def test_a_fifth_of_the_open_requests_may_be_retried_and_always_ten(open_requests: int, retries: int) -> None:
    """One place more once one is given back."""
    budget = RetryBudget()
    assert [budget.take(open_requests) for _ in range(retries + 1)] == [True] * retries + [False]
    budget.give()
    assert [budget.take(open_requests), budget.take(open_requests)] == [True, False]


@asynccontextmanager
async def _retrying(rig: EngineRig, count: int) -> AsyncIterator[list[asyncio.Task[Told]]]:
    """So many requests that a living backend failed, and whose next one is still silent."""
    tasks = []
    for _ in range(count):
        rig.dispatcher.answer("b", _silent())
        tasks.append(asyncio.create_task(relayed(rig, await begun(rig))))
        await _moves(rig, len(tasks))
    yield tasks
    await _end(*tasks)


def _silent() -> CannedAnswer:
    return CannedAnswer(body=(), hangs=True)


async def _moves(rig: EngineRig, number: int) -> None:
    """Lets the loop run until so many requests have moved."""
    async with asyncio.timeout(5.0):
        while len(rig.telemetry.moves) < number:  # noqa: ASYNC110 - the count has no event of its own
            await asyncio.sleep(0)


async def _end(*tasks: asyncio.Task[Told]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_beyond_the_budget_the_failing_answer_passes() -> None:
    """Ten requests are being retried; the end of one makes room."""
    rig = EngineRig(trio())
    async with _retrying(rig, 10) as tasks:
        late = await begun(rig)
        assert (await relayed(rig, late)).heads == []
        assert [decision.id for decision in rig.telemetry.unretried] == [late]
        await _end(tasks[0])
        settled(rig, "t-1")
        rig.dispatcher.answer("b", CannedAnswer())
        assert (await relayed(rig, late)).status == 200
        assert len(rig.telemetry.unretried) == 1


async def test_a_certain_answer_gives_the_place_back() -> None:
    """From then on the request is not retried, however long its answer takes."""
    rig = EngineRig(trio())
    async with _retrying(rig, 9):
        for _ in range(2):
            rig.dispatcher.answer("b", CannedAnswer())
            assert (await relayed(rig, await begun(rig))).status == 200
    assert rig.telemetry.unretried == []


@pytest.mark.parametrize("flags", [("UF",), ("UC",)])
async def test_a_backend_that_is_gone_needs_no_place(flags: tuple[str, ...]) -> None:
    """It has the request no more: the load is what it was."""
    rig = EngineRig(trio())
    async with _retrying(rig, 10):
        rig.dispatcher.answer("b", CannedAnswer())
        told = await relayed(rig, await begun(rig), ResponseHeaders(503, "", end=False, flags=flags))
        assert told.status == 200
    assert rig.telemetry.unretried == []


@pytest.mark.parametrize(("open_requests", "moves"), [(54, 10), (55, 11)])
async def test_the_budget_grows_with_the_open_requests(open_requests: int, moves: int) -> None:
    """Those that are being retried are among them."""
    rig = EngineRig(trio())
    async with _retrying(rig, 10):
        late = [await begun(rig) for _ in range(open_requests - 10)]
        rig.dispatcher.answer("b", _silent())
        eleventh = asyncio.create_task(relayed(rig, late[0]))
        async with asyncio.timeout(5.0):
            while not eleventh.done() and len(rig.telemetry.moves) < 11:  # noqa: ASYNC110 - no event of its own
                await asyncio.sleep(0)
        assert len(rig.telemetry.moves) == moves
        await _end(eleventh)


async def test_a_request_takes_one_place_in_the_budget_however_often_it_moves() -> None:
    """And gives back one."""
    rig = EngineRig(trio())
    async with _retrying(rig, 9):
        rig.dispatcher.answer("b", failing(500))
        rig.dispatcher.answer("c", CannedAnswer())
        assert (await relayed(rig, await begun(rig))).status == 200
        assert len(rig.telemetry.moves) == 11
        rig.dispatcher.answer("b", CannedAnswer())
        assert (await relayed(rig, await begun(rig))).status == 200
    assert rig.telemetry.unretried == []


async def test_a_request_that_was_not_moved_gives_nothing_back() -> None:
    """Neither one that ended well nor one that the budget kept back."""
    rig = EngineRig(trio())
    async with _retrying(rig, 10):
        kept_back = await begun(rig)
        await relayed(rig, kept_back)
        settled(rig, kept_back)
        settled(rig, await begun(rig), status=200)
        assert (await relayed(rig, await begun(rig))).heads == []


# Memory


def test_the_memory_for_kept_requests_is_bounded() -> None:
    """256 MiB; what exceeds it is not kept, what fills it is."""
    assert MAX_KEPT_BYTES == 268_435_456
    kept = KeptBytes()
    assert [kept.take(268_435_455), kept.take(2), kept.take(1), kept.take(1)] == [True, False, True, False]
    kept.give(1)
    assert [kept.take(1), kept.take(0), kept.take(1)] == [True, True, False]


def _small(rig: EngineRig, requests: int) -> EngineRig:
    """With memory for so many requests only."""
    rig.engine._kept_bytes = KeptBytes(requests * len(BODY))
    return rig


async def _fails_over(rig: EngineRig) -> bool:
    """Whether a request that begins now would; leaves it open."""
    exchange = rig.engine.exchanges.get(await begun(rig))
    assert exchange is not None
    return exchange.kept is not None


async def test_a_request_beyond_the_memory_does_not_fail_over() -> None:
    """It is served all the same, and its answer passes as it is."""
    rig = _small(EngineRig(trio()), 1)
    rig.dispatcher.answer("b", CannedAnswer())
    first, second = await begun(rig), await begun(rig)
    assert (await relayed(rig, second)).heads == []
    assert (await relayed(rig, first)).status == 200
    assert rig.telemetry.moves == [("a", "b", "upstream_5xx")]


@pytest.mark.parametrize("end", ["left", "settled", "left, then settled", "settled, then left"])
async def test_memory_is_given_back_once(end: str) -> None:
    """When Envoy goes on alone, or at the end."""
    rig = _small(EngineRig(trio()), 2)
    first = await begun(rig)
    assert await _fails_over(rig)
    assert not await _fails_over(rig)
    for step in end.split(", then "):
        if step == "left":
            rig.engine.left(first)
        else:
            settled(rig, first)
    assert [await _fails_over(rig), await _fails_over(rig)] == [True, False]


async def test_a_stream_beyond_the_memory_goes_to_its_backend() -> None:
    """The router brings the answers of those only that it can send once more."""
    rig = EngineRig(silent(trio()))
    rig.engine._kept_bytes = KeptBytes(len(STREAM))
    plans = [await rig.engine.plan(head(), STREAM) for _ in range(2)]
    clusters = [dict(plan.edits.set)["x-kronaxis-cluster"] for plan in plans]  # type: ignore[union-attr]
    assert clusters == ["router-ext-relay", "backend-a"]


async def test_a_given_up_request_gives_back_its_place_in_the_budget() -> None:
    """And its memory; its late entry does not give them back again."""
    rig = _small(EngineRig(trio()), 10)
    async with _retrying(rig, 10):
        give_up(rig)
        assert len(rig.engine.exchanges) == 0
        for number in range(1, 11):
            settled(rig, f"t-{number:x}")
    rig.telemetry.moves.clear()
    async with _retrying(rig, 10):
        assert not await _fails_over(rig)
    assert rig.telemetry.unretried == []
