"""Pauses that backends ask for, as live requests bring them."""

from dataclasses import replace

import pytest

from router_ext.config.sections import RouterConfig
from router_ext.model.backend import Backend, CircuitBreaker
from router_ext.stream.effects import Answer
from router_ext.stream.events import ResponseHeaders
from tests.fakes.dispatcher import CannedAnswer, event_stream
from tests.fakes.domain import backend, head
from tests.fakes.rig import BODY, EngineRig
from tests.unit.engine.relays import STREAM, TOKEN, begun, failing, relayed, settled, silent, trio


def _guarded() -> Backend:
    return replace(backend(), circuit_breaker=CircuitBreaker(error_threshold=3, window_s=10.0))


def _config() -> RouterConfig:
    return trio(_guarded(), backend("b"))


def _is_open(rig: EngineRig) -> bool:
    return rig.engine.pool["a"].state.tripped


def _busy(status: int, retry_after: str) -> ResponseHeaders:
    return ResponseHeaders(status, "application/json", False, retry_after)


async def test_a_503_with_a_time_to_come_back_pauses_and_is_no_error() -> None:
    """The breaker stays closed; so many seconds no request goes there, then it does again."""
    rig = EngineRig(_config())
    for decision_id in [await begun(rig) for _ in range(4)]:
        rig.dispatcher.answer("b", CannedAnswer())
        assert (await relayed(rig, decision_id, _busy(503, "30"))).status == 200
        settled(rig, decision_id)
    assert not rig.engine.pool["a"].state.tripped
    assert rig.telemetry.pauses == [("a", 30.0)] * 4
    assert rig.telemetry.moves == [("a", "b", "upstream_5xx")] * 4
    chosen = []
    for wait_s in (0.0, 29.75, 0.25):
        rig.clock.advance(wait_s)
        await begun(rig)
        chosen.append(rig.telemetry.decisions[-1].backend)
    assert chosen == ["b", "b", "a"]


async def test_a_503_without_a_time_to_come_back_is_an_error() -> None:
    """As is one whose time cannot be read."""
    rig = EngineRig(_config())
    for value in ("", "soon", "0"):
        assert not _is_open(rig)
        rig.dispatcher.answer("b", CannedAnswer())
        await relayed(rig, await begun(rig), _busy(503, value))
    assert (_is_open(rig), rig.telemetry.pauses) == (True, [])


async def test_a_pause_is_granted_without_another_candidate_too() -> None:
    """The answer passes, its request is settled by Envoy's entry, and no error is counted."""
    rig = EngineRig(trio(_guarded()))
    ids = [await begun(rig) for _ in range(4)]
    for decision_id in ids:
        assert (await relayed(rig, decision_id, _busy(503, "30"))).heads == []
        settled(rig, decision_id)
    assert not _is_open(rig)
    plan = await rig.engine.plan(head(), BODY)
    assert isinstance(plan, Answer)
    assert (plan.status, dict(plan.headers)["retry-after"]) == (503, "30")


async def test_a_pause_is_granted_where_the_request_can_no_more_be_moved() -> None:
    """Envoy shows the answer's head all the same."""
    rig = EngineRig(_config())
    decision_id = await begun(rig)
    rig.engine.left(decision_id)
    await relayed(rig, decision_id, _busy(429, "5"))
    assert rig.telemetry.pauses == [("a", 5.0)]


async def test_envoys_stand_in_pauses_nobody() -> None:
    """It is not the backend's answer."""
    rig = EngineRig(silent(_config()))
    rig.dispatcher.answer("a", event_stream(TOKEN))
    await relayed(rig, await begun(rig, STREAM), _busy(503, "2"))
    assert rig.telemetry.pauses == []


@pytest.mark.parametrize(("asked", "granted"), [("60", 60.0), ("61", 60.0), ("99999", 60.0)])
@pytest.mark.parametrize("status", [429, 503])
async def test_a_backend_that_the_router_asks_can_ask_for_a_pause(status: int, asked: str, granted: float) -> None:
    """At most a minute."""
    rig = EngineRig(silent(trio(_guarded(), backend("b"))))
    rig.dispatcher.answer("a", failing(status, ("retry-after", asked)))
    rig.dispatcher.answer("b", event_stream(TOKEN))
    await relayed(rig, await begun(rig, STREAM))
    assert rig.telemetry.pauses == [("a", granted)]
    assert rig.engine.pool["a"].state.paused_until == rig.clock.now_s + granted


async def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    """The later end stands."""
    rig = EngineRig(trio(backend("a")))
    ids = [await begun(rig) for _ in range(2)]
    for decision_id, seconds in zip(ids, ("30", "5"), strict=True):
        await relayed(rig, decision_id, _busy(503, seconds))
    assert rig.engine.pool["a"].state.paused_until == rig.clock.now_s + 30
