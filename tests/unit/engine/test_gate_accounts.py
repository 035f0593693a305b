"""What gated requests leave in the accounts: costs, counts in flight, what is learned of backends, turns and pairs."""

import asyncio
from dataclasses import replace

import pytest

from router_ext.config.sections import OnExhausted
from router_ext.model.backend import CircuitBreaker
from router_ext.model.outcome import Usage
from tests.fakes.dispatcher import CannedAnswer
from tests.fakes.domain import backend, head
from tests.fakes.rig import BODY, EngineRig
from tests.unit.engine.gated import (
    BAD,
    GOOD,
    IDLE,
    STAND_IN,
    WITH_SCHEMA,
    WORSE,
    Waiting,
    answering,
    asked,
    asked_stream,
    error,
    gated,
    gated_rig,
    quality,
    says,
    slow,
    streams,
)
from tests.unit.engine.relays import JSON, STREAM, Acting, Told, begun, give_up, relayed, settled

SHOP = head(x_kronaxis_service="shop")
CHEAP = ("shop", "a", "proxied", 10)
"""10 tokens of 1 micro-dollar."""
RESCUE = ("shop", "b", "fallback", 100)
"""10 tokens of 10 micro-dollars."""


async def _started(rig: EngineRig, *answers: Waiting, body: bytes = BODY) -> tuple[str, asyncio.Task[Told]]:
    """A request whose answers are waited for."""
    decision_id = await begun(rig, body, SHOP)
    task = asyncio.create_task(relayed(rig, decision_id, STAND_IN))
    async with asyncio.timeout(5.0):
        for answer in answers:
            await answer.asked.wait()
    return decision_id, task


# Costs


@pytest.mark.parametrize(
    ("cheap", "fallback", "charges"),
    [
        (says(GOOD), None, [CHEAP]),
        (says(BAD), says(GOOD), [CHEAP, RESCUE]),
        (says(BAD), says(WORSE), [CHEAP, RESCUE]),
        (says(BAD), error(500), [CHEAP]),
        (says(BAD), None, [CHEAP]),
        (error(500), says(GOOD), [RESCUE]),
        (None, says(GOOD), [RESCUE]),
        (error(400), None, []),
        (error(500), error(500), []),
    ],
)
@pytest.mark.parametrize("on_exhausted", OnExhausted)
async def test_every_call_that_was_answered_is_paid_once(
    on_exhausted: OnExhausted,
    cheap: CannedAnswer | None,
    fallback: CannedAnswer | None,
    charges: list[tuple[str, str, str, int]],
) -> None:
    """Whatever the client got of it; that of the gate under a kind of its own."""
    rig = answering(cheap, fallback=fallback, on_exhausted=on_exhausted)
    await asked(rig, BODY, SHOP)
    assert rig.telemetry.charges == charges
    assert rig.in_flight() == IDLE


async def test_streams_are_paid_like_plain_answers() -> None:
    """By the counts in their last event."""
    rig = answering(streams(BAD), fallback=streams(GOOD))
    await asked_stream(rig, head(x_kronaxis_service="shop", x_kronaxis_response_schema="{}"))
    assert rig.telemetry.charges == [CHEAP, RESCUE]


async def test_a_failover_to_the_fallback_is_no_call_of_the_gate() -> None:
    """The request's own rules led there."""
    rig = answering(error(500), fallback=says(GOOD), chain=("a", "b"))
    await asked(rig, BODY, SHOP)
    assert rig.telemetry.charges == [("shop", "b", "proxied", 100)]


async def test_a_call_that_was_cancelled_costs_nothing() -> None:
    """Nobody knows its tokens."""
    cheap, fallback = slow(says(GOOD)), slow(says(GOOD))
    rig = answering(cheap, fallback=fallback, parallel=True)
    decision_id, task = await _started(rig, cheap, fallback)
    cheap.go.set()
    await task
    settled(rig, decision_id)
    assert (rig.telemetry.charges, rig.in_flight()) == ([CHEAP], IDLE)


async def test_a_call_that_was_not_needed_is_paid_all_the_same() -> None:
    """Its answer was whole before the cheap one was good."""
    cheap = slow(says(GOOD))
    rig = answering(cheap, fallback=says(GOOD), parallel=True)
    decision_id, task = await _started(rig, cheap)
    async with asyncio.timeout(5.0):
        while rig.in_flight()["b"]:  # noqa: ASYNC110 - the count has no event of its own
            await asyncio.sleep(0)
    cheap.go.set()
    await task
    settled(rig, decision_id)
    assert (rig.telemetry.charges, rig.in_flight()) == ([RESCUE, CHEAP], IDLE)


# The end of the request


@pytest.mark.parametrize(
    ("cheap", "fallback", "name", "usage", "attempts"),
    [
        (says(GOOD, (8, 2)), None, "a", Usage(8, 2), 1),
        (says(BAD, (8, 2)), says(GOOD, (9, 3)), "b", Usage(9, 3), 2),
        (says(BAD, (8, 2)), says(WORSE, (9, 3)), "b", Usage(9, 3), 2),
        (says(BAD, (8, 2)), error(500), "a", Usage(8, 2), 2),
    ],
)
@pytest.mark.parametrize("parallel", [False, True])
async def test_the_end_tells_of_the_answer_that_the_client_got(
    cheap: CannedAnswer, fallback: CannedAnswer | None, name: str, usage: Usage, attempts: int, *, parallel: bool
) -> None:
    """Its backend and its tokens."""
    rig = answering(cheap, fallback=fallback, parallel=parallel)
    decision_id = await begun(rig)
    told = await relayed(rig, decision_id, STAND_IN)
    end = settled(rig, decision_id)
    assert (end.decision.backend, end.outcome.usage, end.outcome.attempts) == (name, usage, attempts)
    assert (end.outcome.failure, told.headers["x-kronaxis-backend"]) == (None, name)
    assert (told.heads[0].metadata["backend"], told.heads[0].metadata["attempts"]) == (name, str(attempts))
    assert rig.in_flight() == IDLE


# What is learned of backends


async def test_a_bad_answer_is_no_error_of_its_backend() -> None:
    """Its breaker stays closed, and its time counts once, as the time that it took."""
    cheap = replace(backend("a"), circuit_breaker=CircuitBreaker(error_threshold=1, window_s=10.0))
    rig = gated_rig(gated(cheap, backend("b")))
    rig.dispatcher.answer("a", Acting(200, JSON, says(BAD).body, acts=lambda: rig.clock.advance(0.25)))
    rig.dispatcher.answer("b", Acting(200, JSON, says(GOOD).body, acts=lambda: rig.clock.advance(4)))
    decision_id = await begun(rig)
    await relayed(rig, decision_id, STAND_IN)
    assert settled(rig, decision_id).ttft_s == 4.0
    states = rig.engine.pool.snapshot()
    assert (states["a"].tripped, rig.telemetry.circuits) == (False, [])
    assert [(states[name].ttft.samples, states[name].ttft.p50_ms) for name in "ab"] == [(1, 250.0), (1, 4000.0)]


async def test_a_cheap_answer_that_must_do_counts_its_own_time_only() -> None:
    """Not the fallback's, which failed after 30 s."""
    rig = gated_rig()
    rig.dispatcher.answer("a", Acting(200, JSON, says(BAD).body, acts=lambda: rig.clock.advance(0.25)))
    rig.dispatcher.answer("b", Acting(500, JSON, (b"{}",), acts=lambda: rig.clock.advance(30)))
    decision_id = await begun(rig)
    await relayed(rig, decision_id, STAND_IN)
    assert settled(rig, decision_id).ttft_s == 0.25
    states = rig.engine.pool.snapshot()
    assert (states["a"].ttft.samples, states["a"].ttft.p50_ms, states["b"].ttft.samples) == (1, 250.0, 0)


async def test_a_fallback_that_waits_for_the_cheap_answer_counts_its_own_time_only() -> None:
    """It took 2 s, the cheap one 10."""
    rig = gated_rig(gated(parallel=True))
    cheap = slow(says(BAD), lambda: rig.clock.advance(8))
    rig.dispatcher.answer("a", cheap)
    rig.dispatcher.answer("b", Acting(200, JSON, says(GOOD).body, acts=lambda: rig.clock.advance(2)))
    decision_id, task = await _started(rig, cheap)
    async with asyncio.timeout(5.0):
        while rig.in_flight()["b"]:  # noqa: ASYNC110 - the count has no event of its own
            await asyncio.sleep(0)
    cheap.go.set()
    await task
    assert settled(rig, decision_id).ttft_s == 2.0
    states = rig.engine.pool.snapshot()
    assert [(states[name].ttft.samples, states[name].ttft.p50_ms) for name in "ab"] == [(1, 10_000.0), (1, 2000.0)]


async def test_the_time_to_judge_is_not_the_backends() -> None:
    """And its place is free meanwhile."""
    rig = answering(Acting(200, JSON, says(GOOD).body, acts=lambda: rig.clock.advance(0.25)))
    rig.judge.waits = asyncio.Event()
    decision_id, task = await _started(rig)
    async with asyncio.timeout(5.0):
        while not rig.judge.asked:  # noqa: ASYNC110 - the list has no event of its own
            await asyncio.sleep(0)
    assert rig.in_flight() == IDLE
    rig.clock.advance(1)
    rig.judge.waits.set()
    await task
    assert settled(rig, decision_id).ttft_s == 0.25
    assert rig.telemetry.gate_times == [1.0]


async def test_a_held_stream_counts_its_first_token() -> None:
    """Not its end, and not when the client got it."""
    rig = gated_rig()
    kind = (("content-type", "text/event-stream"),)
    for name, text in (("a", BAD), ("b", GOOD)):
        pieces = streams(text).body
        rig.dispatcher.answer(name, Acting(200, kind, pieces, acts=lambda: rig.clock.advance(0.25)))
    decision_id = await begun(rig, STREAM, WITH_SCHEMA)
    await relayed(rig, decision_id, STAND_IN)
    assert settled(rig, decision_id).ttft_s == 0.5
    states = rig.engine.pool.snapshot()
    assert [(states[name].ttft.samples, states[name].ttft.p50_ms) for name in "ab"] == [(1, 500.0), (1, 500.0)]


# Entries that get lost


@pytest.mark.parametrize("parallel", [False, True])
async def test_a_request_whose_fallback_takes_long_is_not_lost(*, parallel: bool) -> None:
    """Its cheap attempt is over: Envoy has a call of the fallback only, and so has the router."""
    fallback = slow(says(GOOD))
    rig = answering(says(BAD), fallback=fallback, parallel=parallel)
    decision_id, task = await _started(rig, fallback)
    async with asyncio.timeout(5.0):
        while rig.in_flight()["a"]:  # noqa: ASYNC110 - the count has no event of its own
            await asyncio.sleep(0)
    for _ in range(20):
        rig.clock.advance(1)
        rig.engine.reconcile({"backend-b": 1})
    assert (rig.telemetry.losses, rig.in_flight()) == ([], {"a": 0, "b": 1})
    fallback.go.set()
    assert quality(await task) == ("fallback", "b", "2")
    settled(rig, decision_id)
    assert rig.in_flight() == IDLE


async def test_two_calls_at_once_are_no_loss() -> None:
    """Envoy has both."""
    cheap, fallback = slow(says(GOOD)), slow(says(GOOD))
    rig = answering(cheap, fallback=fallback, parallel=True)
    decision_id, task = await _started(rig, cheap, fallback)
    for _ in range(20):
        rig.clock.advance(1)
        rig.engine.reconcile({"backend-a": 1, "backend-b": 1})
    assert rig.telemetry.losses == []
    cheap.go.set()
    await task
    settled(rig, decision_id)
    assert rig.in_flight() == IDLE


async def test_a_request_that_envoy_no_longer_has_is_given_up_in_the_middle() -> None:
    """It is brought to its end all the same, and paid once; a late entry finds it."""
    fallback = slow(says(GOOD))
    rig = answering(says(BAD), fallback=fallback)
    decision_id, task = await _started(rig, fallback)
    give_up(rig)
    assert ([decision.backend for decision in rig.telemetry.losses], rig.in_flight()) == (["b"], IDLE)
    fallback.go.set()
    assert quality(await task) == ("fallback", "b", "2")
    settled(rig, decision_id)
    assert (rig.telemetry.charges, rig.in_flight()) == ([CHEAP, RESCUE], IDLE)


async def test_an_answer_whose_entry_never_comes_is_given_up_after_an_hour() -> None:
    """No count in flight shows that it is missing: a slow client may still read what the router holds."""
    rig = answering(says(GOOD))
    decision_id = await begun(rig)
    await relayed(rig, decision_id, STAND_IN)
    rig.clock.advance(3599.5)
    rig.engine.reconcile({"backend-a": 1})
    assert (rig.telemetry.losses, len(rig.engine.exchanges)) == ([], 1)
    rig.clock.advance(0.5)
    rig.engine.reconcile({"backend-a": 1})
    assert ([decision.id for decision in rig.telemetry.losses], len(rig.engine.exchanges)) == ([decision_id], 0)
    assert settled(rig, decision_id).outcome.failure is None


async def test_a_certain_answer_gives_its_place_in_the_retry_budget_back() -> None:
    """Eleven rescues, one after the other, none of them settled."""
    rig = gated_rig()
    for _ in range(11):
        rig.dispatcher.answer("a", says(BAD))
        rig.dispatcher.answer("b", says(GOOD))
        assert quality(await relayed(rig, await begun(rig), STAND_IN)) == ("fallback", "b", "2")
    assert rig.telemetry.unretried == []
