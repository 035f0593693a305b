"""The cheap backend and the fallback asked at the same time."""

import asyncio
from dataclasses import replace

import pytest

from router_ext.config.sections import OnExhausted
from router_ext.model.backend import CircuitBreaker
from router_ext.model.snapshot import Health
from tests.fakes.dispatcher import CannedAnswer
from tests.fakes.domain import backend
from tests.fakes.rig import BODY, EngineRig
from tests.unit.engine.gated import (
    BAD,
    GOOD,
    IDLE,
    STAND_IN,
    WITH_SCHEMA,
    WORSE,
    asked,
    asked_stream,
    body_of,
    calls,
    error,
    gated,
    gated_rig,
    quality,
    says,
    slow,
    streams,
)
from tests.unit.engine.relays import JSON, STREAM, Told, begun, relayed, settled


def _rig(cheap: CannedAnswer | None, fallback: CannedAnswer | None, **changes: object) -> EngineRig:
    rig = gated_rig(gated(parallel=True, **changes))  # type: ignore[arg-type]
    rig.dispatcher.answer("a", cheap)
    rig.dispatcher.answer("b", fallback)
    return rig


async def _until_idle(rig: EngineRig, name: str) -> None:
    """Lets the loop run until nothing is in flight at a backend."""
    async with asyncio.timeout(5.0):
        while rig.in_flight()[name]:  # noqa: ASYNC110 - the count has no event of its own
            await asyncio.sleep(0)


async def _begun(rig: EngineRig, *answers: CannedAnswer, body: bytes = BODY) -> tuple[str, asyncio.Task[Told]]:
    """A request whose backends are all waited for."""
    decision_id = await begun(rig, body, WITH_SCHEMA)
    task = asyncio.create_task(relayed(rig, decision_id, STAND_IN))
    async with asyncio.timeout(5.0):
        for answer in answers:
            await answer.asked.wait()  # type: ignore[attr-defined]
    return decision_id, task


async def test_both_are_asked_at_once() -> None:
    """And both count in flight."""
    cheap, fallback = slow(says(GOOD)), slow(says(GOOD))
    rig = _rig(cheap, fallback)
    decision_id, task = await _begun(rig, cheap, fallback)
    assert (sorted(calls(rig)), rig.in_flight()) == (["a", "b"], {"a": 1, "b": 1})
    cheap.go.set()
    assert quality(await task) == ("passed", "a", "")
    settled(rig, decision_id)
    assert rig.in_flight() == IDLE


@pytest.mark.parametrize("body", [BODY, STREAM], ids=["plain", "stream"])
async def test_a_good_cheap_answer_ends_the_other_call(body: bytes) -> None:
    """Before the client gets any of it: the fallback's connection is closed, and its place is free."""
    cheap, fallback = slow(streams(GOOD) if body is STREAM else says(GOOD)), slow(says(GOOD))
    rig = _rig(cheap, fallback)
    decision_id, task = await _begun(rig, cheap, fallback, body=body)
    cheap.go.set()
    told = await task
    assert (told.body, quality(told)) == (body_of(cheap), ("passed", "a", ""))
    assert (fallback.closed, rig.in_flight()["b"]) == (True, 0)
    settled(rig, decision_id)
    assert (rig.telemetry.gated, rig.telemetry.moves, rig.in_flight()) == ([("passed", "")], [], IDLE)


@pytest.mark.parametrize("first", ["cheap", "fallback"])
@pytest.mark.parametrize("body", [BODY, STREAM], ids=["plain", "stream"])
async def test_for_a_bad_cheap_answer_the_other_one_is_there(first: str, body: bytes) -> None:
    """Whichever comes first."""
    kind = streams if body is STREAM else says
    cheap, better = slow(kind(BAD)), slow(kind(GOOD))
    rig = _rig(cheap, better)
    decision_id, task = await _begun(rig, cheap, better, body=body)
    early, late, name = (cheap, better, "a") if first == "cheap" else (better, cheap, "b")
    early.go.set()
    await _until_idle(rig, name)
    assert not task.done()
    late.go.set()
    told = await task
    assert (told.body, quality(told)) == (body_of(better), ("fallback", "b", "2"))
    settled(rig, decision_id)
    assert (calls(rig), rig.in_flight()) == (["a", "b"], IDLE)
    assert rig.telemetry.gated == [("fallback", "invalid_json")]


async def test_a_good_fallback_does_not_come_before_the_cheap_answer_is_known() -> None:
    """A good cheap answer wins, however late; the other one is not used."""
    cheap = slow(says(GOOD))
    rig = _rig(cheap, says(GOOD))
    decision_id, task = await _begun(rig, cheap)
    await _until_idle(rig, "b")
    assert not task.done()
    cheap.go.set()
    assert quality(await task) == ("passed", "a", "")
    assert settled(rig, decision_id).decision.backend == "a"
    assert rig.pairs.rescues == []


@pytest.mark.parametrize(("on_exhausted", "status"), [(OnExhausted.RETURN, 200), (OnExhausted.ERROR, 502)])
async def test_two_bad_answers_are_as_bad_as_one_after_the_other(on_exhausted: OnExhausted, status: int) -> None:
    """The fallback's is given, or an error."""
    rig = _rig(says(BAD), says(WORSE), on_exhausted=on_exhausted)
    told = await asked(rig)
    assert (told.status, quality(told), rig.in_flight()) == (status, ("failed", "b", "2"), IDLE)


@pytest.mark.parametrize("cheap", [None, error(500), error(429)])
async def test_a_failing_cheap_backend_leaves_the_fallbacks_answer(cheap: CannedAnswer | None) -> None:
    """It is there already."""
    better = says(GOOD)
    rig = _rig(cheap, better)
    told = await asked(rig)
    assert (told.body, quality(told), rig.in_flight()) == (body_of(better), ("fallback", "b", "2"), IDLE)


@pytest.mark.parametrize("failed", [None, error(500), error(400), CannedAnswer(200, JSON, (b"{",), cut=True)])
@pytest.mark.parametrize(("text", "told"), [(GOOD, ("passed", "a", "")), (BAD, ("failed", "a", "2"))])
async def test_a_failing_fallback_leaves_the_cheap_answer(
    failed: CannedAnswer | None, text: str, told: tuple[str, str, str]
) -> None:
    """Good or bad."""
    answer = says(text)
    rig = _rig(answer, failed)
    got = await asked(rig)
    assert (got.status, got.body, quality(got), rig.in_flight()) == (200, body_of(answer), told, IDLE)


async def test_an_error_of_the_client_ends_the_other_call() -> None:
    """The fallback would say the same."""
    cheap, fallback = slow(error(400)), slow(says(GOOD))
    rig = _rig(cheap, fallback)
    decision_id, task = await _begun(rig, cheap, fallback)
    cheap.go.set()
    told = await task
    assert (told.status, quality(told), fallback.closed) == (400, ("skipped", "a", ""), True)
    settled(rig, decision_id)
    assert rig.in_flight() == IDLE


async def test_a_large_cheap_answer_ends_the_other_call() -> None:
    """It is passed on as it comes, after the fallback's connection was closed."""
    large, fallback = slow(CannedAnswer(200, JSON, (b"x" * 101, b"y"))), slow(says(GOOD))
    rig = _rig(large, fallback, max_body_bytes=100)
    decision_id, task = await _begun(rig, large, fallback)
    large.go.set()
    told = await task
    assert (told.body, quality(told), fallback.closed) == (b"x" * 101 + b"y", ("skipped", "a", ""), True)
    settled(rig, decision_id)
    assert rig.in_flight() == IDLE


async def test_a_large_fallbacks_answer_outlives_the_race() -> None:
    """Its connection stays open until the client has it."""
    large = CannedAnswer(200, JSON, (b"x" * 251, b"y"))
    rig = _rig(says(BAD), large, max_body_bytes=250)
    decision_id = await begun(rig)
    parts = rig.engine.relay(decision_id, STAND_IN)
    await anext(parts)
    closed = [large.closed]
    assert [len(part.data) async for part in parts] == [251, 1, 0]  # type: ignore[union-attr]
    assert [*closed, large.closed] == [False, True]
    settled(rig, decision_id)
    assert rig.in_flight() == IDLE


async def test_the_cheap_backends_other_candidates_do_not_include_the_fallback() -> None:
    """It is being asked already; a third one may better a failure."""
    rig = gated_rig(gated(backend("a"), backend("b"), backend("c"), chain=("a", "b", "c"), parallel=True))
    rig.dispatcher.answer("a", error(500))
    rig.dispatcher.answer("b", slow(says(WORSE)))
    rig.dispatcher.answer("c", says(GOOD))
    assert quality(await asked(rig)) == ("passed", "c", "2")
    assert rig.in_flight() == {"a": 0, "b": 0, "c": 0}


# Without the fallback


async def test_a_fallback_that_is_not_available_is_asked_afterwards_if_it_is_then() -> None:
    """As in the other mode."""
    cheap = slow(says(BAD))
    rig = _rig(cheap, says(GOOD))
    rig.engine.set_health("b", Health.DOWN)
    decision_id, task = await _begun(rig, cheap)
    assert (calls(rig), rig.in_flight()) == (["a"], {"a": 1, "b": 0})
    rig.engine.set_health("b", Health.HEALTHY)
    cheap.go.set()
    assert quality(await task) == ("fallback", "b", "2")
    settled(rig, decision_id)
    assert rig.in_flight() == IDLE


async def test_without_any_fallback_the_client_gets_the_cheap_answer() -> None:
    """It is told that it is bad."""
    rig, bad = _rig(says(BAD), None), says(BAD)
    rig.engine.set_health("b", Health.DOWN)
    told = await asked(rig)
    assert (told.body, quality(told), calls(rig)) == (body_of(bad), ("failed", "a", ""), ["a"])


async def test_a_failing_fallback_is_counted_by_its_breaker_also_when_it_was_not_needed() -> None:
    """Its backend failed, whoever won."""
    breaker = CircuitBreaker(error_threshold=1, window_s=10.0)
    rig = gated_rig(gated(backend("a"), replace(backend("b"), circuit_breaker=breaker), parallel=True))
    cheap = slow(says(GOOD))
    rig.dispatcher.answer("a", cheap)
    rig.dispatcher.answer("b", error(500))
    decision_id, task = await _begun(rig, cheap)
    await _until_idle(rig, "b")
    cheap.go.set()
    assert quality(await task) == ("passed", "a", "")
    settled(rig, decision_id)
    assert rig.telemetry.circuits == [("b", True)]


# A client that leaves


@pytest.mark.parametrize("cheap_is_bad", [False, True])
async def test_a_client_that_leaves_ends_both_calls(cheap_is_bad: bool) -> None:
    """While both are waited for, or only the fallback still is."""
    cheap, fallback = slow(says(BAD)), slow(says(GOOD))
    rig = _rig(cheap, fallback)
    decision_id, task = await _begun(rig, cheap, fallback)
    if cheap_is_bad:
        cheap.go.set()
        await _until_idle(rig, "a")
    task.cancel()
    await asyncio.wait([task])
    assert (task.cancelled(), cheap.closed, fallback.closed) == (True, True, True)
    assert rig.in_flight()["a" if cheap_is_bad else "b"] == 0
    assert settled(rig, decision_id, status=0, flags=("DC",)).outcome.failure == "client_left"
    assert (rig.in_flight(), rig.pairs.rescues) == (IDLE, [])


async def test_a_client_that_leaves_while_its_answer_is_judged_ends_both_calls() -> None:
    """No verdict comes any more."""
    fallback = slow(says(GOOD))
    rig = _rig(says(GOOD), fallback)
    rig.judge.waits = asyncio.Event()
    decision_id, task = await _begun(rig, fallback)
    await _until_idle(rig, "a")
    task.cancel()
    await asyncio.wait([task])
    settled(rig, decision_id, status=0, flags=("DC",))
    assert (fallback.closed, rig.in_flight(), rig.telemetry.gated) == (True, IDLE, [])


async def test_a_relay_that_is_closed_before_it_began_has_asked_nobody() -> None:
    """Nothing stays in flight."""
    rig = _rig(says(GOOD), says(GOOD))
    decision_id = await begun(rig)
    await rig.engine.relay(decision_id, STAND_IN).aclose()
    settled(rig, decision_id, status=0, flags=("DC",))
    assert (calls(rig), rig.in_flight()) == ([], IDLE)


async def test_streams_are_raced_like_plain_answers() -> None:
    """Both held; the client gets one of them, whole."""
    better = streams(GOOD)
    rig = _rig(streams(BAD), better)
    told = await asked_stream(rig)
    assert (told.body, quality(told), rig.in_flight()) == (body_of(better), ("fallback", "b", "2"), IDLE)
