"""Watchers of live requests: what they are told, and that nobody waits for them."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractContextManager

import pytest

from router_ext.engine.watching import MAX_QUEUED, MAX_WATCHERS, Happening, TooManyWatchersError, Watcher
from router_ext.model.decision_filter import DecisionFilter
from router_ext.model.outcome import Usage
from router_ext.model.snapshot import Health
from router_ext.stream.events import ResponseHeaders
from tests.fakes.dispatcher import CannedAnswer
from tests.fakes.domain import backend, head, record, router
from tests.fakes.rig import BODY, EngineRig


def rig() -> EngineRig:
    """Two backends, each with a price."""
    return EngineRig(router(backend("a", cost=2.0), backend("b", cost=2.0)))


def watch(run: EngineRig, *, decisions: bool = False, **wanted: str) -> AbstractContextManager[Watcher]:
    """A watcher with a filter."""
    return run.engine.watching.watch(DecisionFilter(**wanted), decisions=decisions)


def heard(watcher: Watcher) -> list[Happening]:
    """What waits for a watcher."""
    return list(watcher._queue)


def named(headers: Mapping[str, str]) -> dict[str, str]:
    """Header names out of those of keywords."""
    return {name.replace("_", "-"): value for name, value in headers.items()}


def served(run: EngineRig, **headers: str) -> str:
    """A request that is answered well. Returns its id."""
    decision_id = run.forward(head_=head(headers=named(headers))).metadata["id"]
    run.engine.settle(record(decision_id, usage=Usage(9, 1, 4)))
    return decision_id


def test_a_request_that_ended_is_told_with_its_decision_and_what_it_cost() -> None:
    """Once, when its log entry comes."""
    run = rig()
    with watch(run) as watcher:
        decision_id = run.forward(head_=head(x_kronaxis_service="s")).metadata["id"]
        assert heard(watcher) == []
        for _ in range(2):
            run.engine.settle(record(decision_id, usage=Usage(9, 1, 4)))
        (told,) = heard(watcher)
    assert told.settlement is not None
    assert (told.decision, told.decision.id) == (run.engine.recent[-1], decision_id)
    assert (told.settlement.last, told.settlement.also_asked) == (told.decision, ())
    assert told.settlement.cost_micro_usd == 20
    assert told.settlement.outcome.usage == Usage(9, 1, 4)


def test_a_request_that_failed_over_tells_of_every_backend() -> None:
    """The first decision, the last one, and who else was asked."""
    run = rig()

    async def fail_over() -> None:
        await run.engine.plan(head(), BODY)
        decision_id = run.engine.recent[-1].id
        async for _ in run.engine.relay(decision_id, ResponseHeaders(500, "", False)):
            pass
        run.engine.settle(record(decision_id))

    run.dispatcher.answer("b", CannedAnswer())
    with watch(run, backend="b") as by_last, watch(run, backend="a") as by_first, watch(run, backend="c") as nobody:
        run.wait(fail_over())
        (told,) = heard(by_last)
        assert heard(by_first) == [told]
        assert heard(nobody) == []
    assert told.settlement is not None
    assert (told.decision.backend, told.settlement.last.backend) == ("a", "b")
    assert told.settlement.also_asked == ("a",)


@pytest.mark.parametrize("down", [False, True], ids=["unreadable", "no-backend"])
def test_a_refused_request_is_told_with_what_the_client_was_told(*, down: bool) -> None:
    """Also one that was refused before anything was decided: then there is no rule and no id."""
    run = rig()
    for name in ("a", "b") if down else ():
        run.engine.set_health(name, Health.DOWN)
    with watch(run, decisions=True, service="s") as watcher:
        run.plan(BODY if down else b"{", head(x_kronaxis_service="s", x_request_id="r"))
        (told,) = heard(watcher)
    assert told.rejection is not None
    assert told.rejection.reason.value == ("no_backend" if down else "invalid_json")
    assert (told.decision.rejection, told.decision.request_id) == (told.rejection.reason.value, "r")
    assert (bool(told.decision.rule), bool(told.decision.id)) == (down, down)


def test_decisions_are_told_as_they_are_made_to_those_who_ask() -> None:
    """In front of the end; the others hear of the end only."""
    run = rig()
    with watch(run, decisions=True) as eager, watch(run) as patient:
        decision_id = served(run)
        assert [item.settlement is None for item in heard(eager)] == [True, False]
        assert {item.decision.id for item in heard(eager)} == {decision_id}
        assert len(heard(patient)) == 1


@pytest.mark.parametrize(
    ("wanted", "hears"),
    [
        ({"service": "s"}, True),
        ({"service": "x"}, False),
        ({"rule": "default"}, True),
        ({"rule": "x"}, False),
        ({"backend": "a"}, True),
        ({"backend": "b"}, False),
        ({"request_id": "req-1"}, True),
        ({"request_id": "t-1"}, True),
        ({"request_id": "t-2"}, False),
        ({"service": "s", "rule": "default", "backend": "a", "request_id": "t-1"}, True),
        ({"service": "s", "backend": "b"}, False),
    ],
    ids=str,
)
def test_a_watcher_hears_what_it_asked_for(wanted: dict[str, str], *, hears: bool) -> None:
    """All conditions together."""
    run = rig()
    with run.engine.watching.watch(DecisionFilter(**wanted)) as watcher:
        served(run, x_kronaxis_service="s", x_request_id="req-1")
        assert bool(heard(watcher)) is hears


def test_a_watcher_that_does_not_keep_up_loses_the_oldest_and_is_told_how_many() -> None:
    """Once, with the next one that it takes; requests go on."""
    run = rig()
    with watch(run) as watcher:
        ids = [served(run) for _ in range(MAX_QUEUED + 2)]

        async def take(count: int) -> list[tuple[str, int]]:
            found = [await watcher.next() for _ in range(count)]
            return [(item[0].decision.id, item[1]) for item in found if item is not None]

        assert asyncio.run(take(2)) == [(ids[2], 2), (ids[3], 0)]
        assert len(heard(watcher)) == MAX_QUEUED - 2
    assert run.telemetry.watch_events_dropped == 2


def test_an_operator_sees_how_many_watch() -> None:
    """Those who came too late are not among them, and nobody is when all have gone."""
    run = rig()
    with watch(run), watch(run):
        assert run.telemetry.watching == 2
    assert run.telemetry.watching == 0


def test_the_number_of_watchers_is_bounded() -> None:
    """One that goes makes room for the next."""
    watching = rig().engine.watching
    before = [watching.watch(DecisionFilter()) for _ in range(MAX_WATCHERS)]
    for one in before:
        one.__enter__()
    with pytest.raises(TooManyWatchersError), watching.watch(DecisionFilter()):
        pass
    before.pop().__exit__(None, None, None)
    with watching.watch(DecisionFilter()):
        assert watching.active


def test_nothing_is_put_together_while_nobody_watches() -> None:
    """Before the first and after the last."""
    run = rig()
    active = [run.engine.watching.active]
    with watch(run):
        active.append(run.engine.watching.active)
    active.append(run.engine.watching.active)
    assert active == [False, True, False]


def test_the_end_of_the_router_ends_what_is_seen() -> None:
    """After what waits; also for whoever comes later."""
    run = rig()

    async def until_end(watcher: Watcher) -> int:
        count = 0
        while await watcher.next() is not None:
            count += 1
        return count

    with watch(run) as watcher:
        served(run)
        run.engine.watching.close()
        assert asyncio.run(until_end(watcher)) == 1
    with watch(run) as late:
        assert asyncio.run(until_end(late)) == 0
