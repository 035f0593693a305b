"""Waiting for room."""

import asyncio
from contextlib import aclosing
from pathlib import Path

from router_ext.engine.tally import Tally
from router_ext.model.snapshot import Health
from router_ext.stream.effects import Answer, Forward, Plan
from router_ext.stream.events import ResponseHeaders
from tests.fakes.dispatcher import CannedAnswer
from tests.fakes.domain import backend, head, record, router
from tests.fakes.rig import BODY, EngineRig


def _full() -> EngineRig:
    """One backend with room for one request, which is taken."""
    rig = EngineRig(router(backend(room=1)))
    assert rig.forward().metadata["id"] == "t-1"
    return rig


async def _waiting(rig: EngineRig) -> asyncio.Task[Plan]:
    """A request that has asked for room and waits."""
    task = asyncio.create_task(rig.engine.plan(head(), BODY))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not task.done()
    return task


def test_a_request_waits_until_another_one_ends() -> None:
    """It takes the freed place."""
    rig = _full()

    async def scene() -> Plan:
        task = await _waiting(rig)
        rig.engine.settle(record("t-1"))
        return await task

    assert isinstance(asyncio.run(scene()), Forward)
    assert rig.in_flight() == {"a": 1}


def test_a_request_that_fails_over_makes_room_for_the_waiting() -> None:
    """Its place on the first backend, which alone has the adapter, is free as soon as it has moved."""
    rig = EngineRig(router(backend(room=1, adapters=("x",)), backend("b")))
    first = rig.forward().metadata["id"]
    rig.dispatcher.answer("b", CannedAnswer(hangs=True))

    async def scene() -> Plan:
        waiting = asyncio.create_task(rig.engine.plan(head(), BODY.replace(b"m-a", b"x")))
        await asyncio.sleep(0)
        moving = asyncio.create_task(_first_part(rig, first))
        plan = await waiting
        moving.cancel()
        await asyncio.gather(moving, return_exceptions=True)
        return plan

    plan = asyncio.run(scene())
    assert isinstance(plan, Forward)
    assert plan.metadata["backend"] == "a"


async def _first_part(rig: EngineRig, decision_id: str) -> None:
    async with aclosing(rig.engine.relay(decision_id, ResponseHeaders(503, "", end=False))) as parts:
        await anext(parts)


def test_one_freed_place_goes_to_one_of_the_waiting() -> None:
    """The others go on waiting, and are refused when their time is over."""
    rig = _full()

    async def scene() -> list[Plan]:
        tasks = [await _waiting(rig), await _waiting(rig)]
        rig.engine.settle(record("t-1"))
        return await asyncio.gather(*tasks)

    plans = asyncio.run(scene())
    assert sorted(type(plan).__name__ for plan in plans) == ["Answer", "Forward"]
    assert rig.in_flight() == {"a": 1}


def test_a_request_is_refused_when_no_room_comes_in_time() -> None:
    """After 0.3 s: 503, to be tried again in a second; the clock here jumps over that time between two looks."""
    rig = _full()
    rig.clock.step_s = 0.3
    plan = rig.plan()
    assert isinstance(plan, Answer)
    assert (plan.status, dict(plan.headers)["retry-after"]) == (503, "1")
    assert rig.in_flight() == {"a": 1}
    assert rig.engine.recent[-1].candidates[0].reason == "serves 1 of 1"


def test_a_client_that_leaves_while_waiting_is_not_counted() -> None:
    """Nothing was decided yet."""
    rig = _full()

    async def scene() -> None:
        task = await _waiting(rig)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(scene())
    assert rig.in_flight() == {"a": 1}
    assert len(rig.engine.exchanges) == 1


def test_nobody_waits_for_a_backend_that_is_down() -> None:
    """Room will not make it serve: the refusal comes at once. The clock is looked at by the decision, once, and not for
    a deadline.
    """
    rig = EngineRig(router(backend(room=1)))
    rig.engine.set_health("a", Health.DOWN)
    before = rig.clock.now_s
    rig.clock.step_s = 1.0
    assert rig.refuse()[0] == 503
    assert rig.clock.now_s == before + 1.0


def _workers(path: Path, room: int) -> tuple[EngineRig, EngineRig]:
    """Two workers of one router over one backend."""
    Tally.create(path / "tally", 2)
    one, two = (EngineRig(router(backend(room=room)), tally=Tally.open(path / "tally", worker)) for worker in range(2))
    return one, two


def test_all_workers_together_keep_the_bound(tmp_path: Path) -> None:
    """The last place goes to either; the next request is refused by both."""
    one, two = _workers(tmp_path, room=3)
    for rig in (one, two, one):
        rig.forward()
    for rig in (one, two):
        rig.clock.step_s = 0.3
        assert rig.refuse()[0] == 503
        assert rig.engine.recent[-1].candidates[0].reason == "serves 3 of 3"
        assert rig.in_flight() == {"a": 3}


def test_a_request_waits_until_one_of_another_worker_ends(tmp_path: Path) -> None:
    """Nobody tells of it, so the waiting look for it. Once more, as looking ends with the last who waits."""
    one, two = _workers(tmp_path, room=1)
    before = one.forward().metadata["id"]

    async def scene() -> Plan:
        task = await _waiting(two)
        one.engine.settle(record(before))
        return await task

    for _ in range(2):
        plan = asyncio.run(scene())
        assert isinstance(plan, Forward)
        assert (one.in_flight(), two.in_flight()) == ({"a": 1}, {"a": 1})
        two.engine.settle(record(plan.metadata["id"]))
        before = one.forward().metadata["id"]


def test_a_place_that_another_worker_freed_goes_to_one_of_the_waiting(tmp_path: Path) -> None:
    """The others go on waiting, and are refused when their time is over."""
    one, two = _workers(tmp_path, room=1)
    before = one.forward().metadata["id"]

    async def scene() -> list[Plan]:
        tasks = [await _waiting(two), await _waiting(two)]
        one.engine.settle(record(before))
        return await asyncio.gather(*tasks)

    plans = asyncio.run(scene())
    assert sorted(type(plan).__name__ for plan in plans) == ["Answer", "Forward"]
    assert two.in_flight() == {"a": 1}


def test_idle_ends_with_the_last_exchange() -> None:
    """And at once when none is open."""
    rig = EngineRig(router(backend()))

    async def scene() -> list[bool]:
        await rig.engine.idle()
        for _ in range(2):
            await rig.engine.plan(head(), BODY)
        task = asyncio.create_task(rig.engine.idle())
        seen = []
        for decision_id in ("t-1", "t-2"):
            for _ in range(5):
                await asyncio.sleep(0)
            seen.append(task.done())
            rig.engine.settle(record(decision_id))
        await task
        return seen

    assert asyncio.run(scene()) == [False, False]
