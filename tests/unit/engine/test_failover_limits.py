"""What bounds failover: a budget of retries, and of memory for the requests that could be sent once more."""

import pytest

from router_ext.engine.limits import MAX_KEPT_BYTES, KeptBytes, RetryBudget
from tests.fakes.dispatcher import CannedAnswer
from tests.fakes.domain import head
from tests.fakes.rig import BODY, EngineRig
from tests.unit.engine.relays import STREAM, begun, give_up, relayed, settled, silent, trio

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


async def _moved(rig: EngineRig, count: int) -> list[str]:
    """Requests that have failed over and not ended."""
    ids = [await begun(rig) for _ in range(count)]
    for decision_id in ids:
        rig.dispatcher.answer("b", CannedAnswer())
        assert (await relayed(rig, decision_id)).status == 200
    return ids


async def test_beyond_the_budget_the_failing_answer_passes() -> None:
    """Ten requests are being retried; the end of one makes room."""
    rig = EngineRig(trio())
    first, *_ = await _moved(rig, 10)
    late = await begun(rig)
    assert (await relayed(rig, late)).heads == []
    assert [decision.id for decision in rig.telemetry.unretried] == [late]
    assert len(rig.telemetry.moves) == 10
    settled(rig, first)
    rig.dispatcher.answer("b", CannedAnswer())
    assert (await relayed(rig, late)).status == 200
    assert len(rig.telemetry.unretried) == 1


@pytest.mark.parametrize(("open_requests", "moves"), [(54, 10), (55, 11)])
async def test_the_budget_grows_with_the_open_requests(open_requests: int, moves: int) -> None:
    """Those that are being retried are among them."""
    rig = EngineRig(trio())
    ids = [await begun(rig) for _ in range(open_requests)]
    rig.dispatcher.answer("b", *[CannedAnswer() for _ in range(moves)])
    told = [await relayed(rig, decision_id) for decision_id in ids[:12]]
    assert [len(item.heads) for item in told] == [1] * moves + [0] * (12 - moves)


async def test_a_request_takes_one_place_in_the_budget_however_often_it_moves() -> None:
    """And gives back one."""
    rig = EngineRig(trio())
    await _moved(rig, 8)
    rig.dispatcher.answer("b", None)
    rig.dispatcher.answer("c", CannedAnswer())
    twice = await begun(rig)
    assert (await relayed(rig, twice)).status == 200
    assert len(rig.telemetry.moves) == 10
    await _moved(rig, 1)
    assert (await relayed(rig, await begun(rig))).heads == []
    settled(rig, twice)
    await _moved(rig, 1)
    assert (await relayed(rig, await begun(rig))).heads == []


async def test_a_request_that_was_not_moved_gives_nothing_back() -> None:
    """Neither one that ended well nor one that the budget kept back."""
    rig = EngineRig(trio())
    await _moved(rig, 10)
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
    ids = await _moved(rig, 10)
    give_up(rig)
    assert len(rig.engine.exchanges) == 0
    for decision_id in ids:
        settled(rig, decision_id)
    await _moved(rig, 10)
    assert not await _fails_over(rig)
    rig.engine.left("t-11")
    assert (await relayed(rig, await begun(rig))).heads == []
    assert len(rig.telemetry.unretried) == 1
