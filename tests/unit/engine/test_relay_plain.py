"""Answers without a stream that the router brings: one time limit for all attempts, and each passed on as a whole."""

import asyncio
from contextlib import aclosing

import pytest

from router_ext.stream.effects import RelayBody, RelayHead
from router_ext.stream.events import ResponseHeaders
from tests.fakes.dispatcher import CannedAnswer
from tests.fakes.domain import backend
from tests.fakes.rig import EngineRig
from tests.unit.engine.relays import JSON, REFUSED, Acting, begun, failing, relayed, settled, trio


def _slow(rig: EngineRig, status: int, seconds: float, *pieces: bytes, cut: bool = False) -> Acting:
    """An answer each piece of which takes so many seconds."""
    return Acting(status, JSON, pieces or (b"{}",), cut=cut, acts=lambda: rig.clock.advance(seconds))


@pytest.mark.parametrize(("seconds", "asked"), [(119.5, ["b"]), (120.0, []), (121.0, [])])
async def test_a_request_whose_time_is_up_moves_no_more(seconds: float, asked: list[str]) -> None:
    """``default_timeout`` counts from the decision; the answer that came too late passes."""
    rig = EngineRig(trio())
    rig.dispatcher.answer("b", CannedAnswer())
    decision_id = await begun(rig)
    rig.clock.advance(seconds)
    told = await relayed(rig, decision_id)
    assert [call.backend.name for call in rig.dispatcher.calls] == asked
    assert len(told.heads) == len(asked)
    assert rig.telemetry.unretried == []


@pytest.mark.parametrize(("seconds", "asked"), [(19.5, ["b", "c"]), (20.0, ["b"])])
async def test_the_time_limit_is_one_for_all_attempts(seconds: float, asked: list[str]) -> None:
    """100 s are gone with the first one; after 20 s more nobody else is asked."""
    rig = EngineRig(trio())
    rig.dispatcher.answer("b", _slow(rig, 500, seconds))
    rig.dispatcher.answer("c", CannedAnswer())
    decision_id = await begun(rig)
    rig.clock.advance(100)
    told = await relayed(rig, decision_id)
    assert [call.backend.name for call in rig.dispatcher.calls] == asked
    assert told.status == (200 if "c" in asked else 500)


async def test_an_attempt_has_what_the_others_left_of_the_time() -> None:
    """119.99 of 120 s are gone: a backend that hangs is given up after 0.01 s, and the client is told."""
    rig = EngineRig(trio())
    hanging = CannedAnswer(200, JSON, (b"{",), hangs=True)
    rig.dispatcher.answer("b", Acting(200, JSON, (b"{",), hangs=True, acts=lambda: rig.clock.advance(1)))
    rig.dispatcher.answer("c", hanging)
    decision_id = await begun(rig)
    rig.clock.advance(119.99)
    told = await relayed(rig, decision_id)
    assert (told.status, b'"code":"upstream_timeout"' in told.body) == (504, True)
    assert [call.backend.name for call in rig.dispatcher.calls] == ["b"]
    end = settled(rig, decision_id, status=504)
    assert (end.outcome.failure, end.decision.backend) == ("timeout", "b")
    assert rig.engine.pool["b"].state.ttft.samples == 0


async def test_a_stream_has_no_time_limit_but_for_its_first_token() -> None:
    """It moves also after ``default_timeout``."""
    rig = EngineRig(trio())
    rig.dispatcher.answer("b", CannedAnswer())
    decision_id = await begun(rig, b'{"model":"m-a","stream":true}')
    rig.clock.advance(1000)
    assert (await relayed(rig, decision_id)).status == 200


@pytest.mark.parametrize(
    "first", [None, failing(500), CannedAnswer(200, JSON, (b'{"half":',), cut=True), CannedAnswer(503, flags=("UC",))]
)
async def test_a_plain_answer_is_released_as_a_whole(first: CannedAnswer | None) -> None:
    """One that breaks off is never seen by the client."""
    rig = EngineRig(trio())
    rig.dispatcher.answer("b", first)
    rig.dispatcher.answer("c", CannedAnswer(200, JSON, (b'{"a"', b":1}")))
    told = await relayed(rig, await begun(rig))
    assert (told.status, told.body, told.ends) == (200, b'{"a":1}', [True])
    assert told.headers["x-kronaxis-attempts"] == "3"


@pytest.mark.parametrize("status", [200, 201, 302, 400, 404, 422, 499])
async def test_what_is_no_failure_passes_as_it_is(status: int) -> None:
    """Its status, its headers, its body."""
    rig = EngineRig(trio())
    rig.dispatcher.answer("b", CannedAnswer(status, (*JSON, ("x-own", "1")), (b"{}",)))
    decision_id = await begun(rig)
    told = await relayed(rig, decision_id)
    assert (told.status, told.body, told.headers["x-own"]) == (status, b"{}", "1")
    end = settled(rig, decision_id)
    assert (end.outcome.failure, end.outcome.attempts) == (None, 2)
    assert rig.engine.pool["b"].state.ttft.samples == int(status < 400)


async def test_an_empty_answer_has_an_end() -> None:
    """A 204, or a body of no bytes."""
    rig = EngineRig(trio())
    rig.dispatcher.answer("b", CannedAnswer(204, (), ()))
    assert (await relayed(rig, await begun(rig))).bodies == [RelayBody(b"", end=True)]


async def test_a_relay_that_ends_in_the_middle_of_an_attempt_says_nothing_of_its_backend() -> None:
    """Envoy's entry, which tells of the answer before, is not held against it."""
    rig, waits = EngineRig(trio()), asyncio.Event()
    answer = Acting(200, JSON, (b"{",), hangs=True, acts=waits.set)
    rig.dispatcher.answer("b", answer)
    decision_id = await begun(rig)
    task = asyncio.create_task(relayed(rig, decision_id))
    await waits.wait()
    task.cancel()
    await asyncio.wait([task])
    assert answer.closed
    end = settled(rig, decision_id, status=503, flags=("UF",))
    assert (end.outcome.failure, end.decision.backend) == ("router_fault", "b")
    assert rig.in_flight() == {"a": 0, "b": 0, "c": 0}


# Answers that are larger than may be held


def _small(*pieces: bytes, cut: bool = False) -> tuple[EngineRig, CannedAnswer]:
    """A router that holds 100 bytes."""
    rig, answer = EngineRig(trio(max_body_bytes=100)), CannedAnswer(200, JSON, pieces, cut=cut)
    rig.dispatcher.answer("b", answer)
    return rig, answer


async def test_an_answer_of_the_size_that_may_be_held_is_whole() -> None:
    """A byte more and it passes as it comes, usage included."""
    rig, _ = _small(b"x" * 60, b"x" * 40)
    assert (await relayed(rig, await begun(rig))).ends == [True]
    rig, _ = _small(b"x" * 60, b"x" * 41, b'"prompt_tokens":7,', b'"completion_tokens":2')
    decision_id = await begun(rig)
    told = await relayed(rig, decision_id)
    assert (len(told.body), told.ends) == (140, [False, False, False, True])
    outcome = settled(rig, decision_id).outcome
    assert outcome.usage is not None
    assert (outcome.failure, outcome.usage.prompt_tokens, outcome.usage.completion_tokens) == (None, 7, 2)


async def test_a_large_answer_that_breaks_has_no_end() -> None:
    """The client sees that it is not whole; nothing is sent twice."""
    rig, answer = _small(b"x" * 101, b"x", cut=True)
    decision_id = await begun(rig)
    told = await relayed(rig, decision_id)
    assert (len(told.body), told.ends, answer.closed) == (102, [False, False], True)
    assert settled(rig, decision_id).outcome.failure == "upstream_cut"
    assert rig.telemetry.moves == [("a", "b", "upstream_5xx")]


@pytest.mark.parametrize(("flags", "failure"), [(("DC",), "client_left"), ((), "router_fault")])
async def test_a_large_answer_that_is_closed_early_is_no_success(flags: tuple[str, ...], failure: str) -> None:
    """The rest of it was never asked for."""
    rig, answer = _small(b"x" * 101, b"x")
    decision_id = await begun(rig)
    async with aclosing(rig.engine.relay(decision_id, REFUSED)) as parts:
        assert isinstance(await anext(parts), RelayHead)
        await anext(parts)
    assert answer.closed
    assert settled(rig, decision_id, flags=flags).outcome.failure == failure


async def test_a_large_error_of_the_last_backend_is_cut_at_what_may_be_held() -> None:
    """It is still the backend's own answer."""
    rig = EngineRig(trio(backend("a"), backend("b"), max_body_bytes=100))
    rig.dispatcher.answer("b", CannedAnswer(500, JSON, (b"x" * 101, b"y")))
    told = await relayed(rig, await begun(rig), ResponseHeaders(500, "", False))
    assert (told.status, told.body, told.ends) == (500, b"x" * 101, [True])
