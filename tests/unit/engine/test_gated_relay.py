"""Answers that the quality gate holds back: one after the other, the cheap backend's and the fallback's."""

from collections.abc import Callable
from dataclasses import replace

import orjson
import pytest

from router_ext.config.sections import OnExhausted
from router_ext.model.backend import CircuitBreaker
from router_ext.model.gate import Checks, SchemaVerdict
from router_ext.model.snapshot import Health
from tests.fakes.dispatcher import CannedAnswer
from tests.fakes.domain import backend, head
from tests.fakes.rig import BODY, EngineRig
from tests.unit.engine.gated import (
    BAD,
    BETTER,
    GOOD,
    IDLE,
    STAND_IN,
    WITH_SCHEMA,
    WORSE,
    asked,
    body_of,
    calling,
    calls,
    choices,
    error,
    gated,
    gated_rig,
    quality,
    says,
)
from tests.unit.engine.relays import (
    JSON,
    Acting,
    begun,
    failing,
    relayed,
    settled,
)


async def test_a_good_answer_passes_byte_for_byte() -> None:
    """With its own headers; nobody else is asked."""
    rig = gated_rig()
    answer = CannedAnswer(200, (*JSON, ("x-own", "1")), (b'{ "choices": [{"message":', b'{"content":"{}"}} ] }\n'))
    rig.dispatcher.answer("a", answer)
    told = await asked(rig)
    assert (told.status, told.body, told.ends) == (200, body_of(answer), [True])
    assert (told.headers["x-own"], quality(told)) == ("1", ("passed", "a", ""))
    assert (calls(rig), rig.telemetry.gated) == (["a"], [("passed", "")])


@pytest.mark.parametrize(
    ("checks", "bad", "reason"),
    [
        (Checks(), says(""), "empty"),
        (Checks(), CannedAnswer(body=(b"{}",)), "empty"),
        (Checks(), CannedAnswer(body=(b"<html>",)), "empty"),
        (Checks(valid_json=True), says('{"n":', finish="length"), "truncated"),
        (Checks(no_refusal=True), says("I'm sorry, but I can't help with that."), "refusal"),
        (Checks(min_length=8), says(GOOD), "min_length"),
        (Checks(min_tokens=3), says(GOOD), "min_tokens"),
        (Checks(valid_json=True), says(BAD), "invalid_json"),
    ],
)
async def test_in_place_of_a_bad_answer_the_client_gets_the_fallbacks(
    checks: Checks, bad: CannedAnswer, reason: str
) -> None:
    """Whatever is wrong with it; the metrics say what."""
    rig = gated_rig(gated(checks=checks))
    better = says('{"n":22}', (8, 3))
    rig.dispatcher.answer("a", bad)
    rig.dispatcher.answer("b", better)
    told = await asked(rig)
    assert (told.status, told.body) == (200, body_of(better))
    assert quality(told) == ("fallback", "b", "2")
    assert rig.telemetry.gated == [("fallback", reason)]
    assert rig.telemetry.moves == [("a", "b", reason)]


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        (SchemaVerdict.INVALID, "schema"),
        (SchemaVerdict.NOT_JSON, "invalid_json"),
        (SchemaVerdict.TIMEOUT, "schema_timeout"),
    ],
)
async def test_an_answer_that_does_not_fit_its_schema_is_bad(verdict: SchemaVerdict, reason: str) -> None:
    """So is one of which that is not known in time."""
    rig = gated_rig(gated(checks=Checks()))
    rig.judge.verdicts[GOOD] = verdict
    rig.dispatcher.answer("a", says(GOOD))
    rig.dispatcher.answer("b", says(BETTER))
    told = await asked(rig, BODY, WITH_SCHEMA)
    assert (quality(told), rig.telemetry.gated) == (("fallback", "b", "2"), [("fallback", reason)])
    assert rig.telemetry.verdicts == [verdict, SchemaVerdict.VALID]


async def test_the_fallback_gets_the_same_request_under_its_own_model_name() -> None:
    """With the same headers of the client."""
    rig = gated_rig(gated(backend("a"), backend("b", model="m-b")))
    rig.dispatcher.answer("a", says(BAD))
    rig.dispatcher.answer("b", says(GOOD))
    await asked(rig, BODY, head(x_own="1"))
    cheap, fallback = rig.dispatcher.calls
    assert (cheap.body, fallback.body) == (BODY, BODY.replace(b"m-a", b"m-b"))
    assert [dict(call.headers)["x-own"] for call in (cheap, fallback)] == ["1", "1"]
    assert [call.request_id for call in (cheap, fallback)] == ["t-1.1", "t-1.2"]


@pytest.mark.parametrize("bad_at", [None, 0, 1, 2])
async def test_every_choice_must_be_good(bad_at: int | None) -> None:
    """One bad choice of three, and the whole answer is replaced."""
    rig, texts = gated_rig(), [GOOD, GOOD, GOOD]
    if bad_at is not None:
        texts[bad_at] = BAD
    rig.dispatcher.answer("a", choices(*texts))
    rig.dispatcher.answer("b", choices(BETTER, BETTER, BETTER))
    assert quality(await asked(rig)) == (("passed", "a", "") if bad_at is None else ("fallback", "b", "2"))


async def test_a_call_of_a_tool_is_no_text_to_judge() -> None:
    """Nobody looked."""
    rig, answer = gated_rig(), calling()
    rig.dispatcher.answer("a", answer)
    told = await asked(rig)
    assert (told.body, quality(told)) == (body_of(answer), ("skipped", "a", ""))
    assert rig.telemetry.gated == [("skipped", "")]


# When the fallback is no better


async def test_with_return_the_client_gets_the_fallbacks_answer_however_bad() -> None:
    """It is told so."""
    rig, worse = gated_rig(), says(WORSE)
    rig.dispatcher.answer("a", says(BAD))
    rig.dispatcher.answer("b", worse)
    told = await asked(rig)
    assert (told.status, told.body, quality(told)) == (200, body_of(worse), ("failed", "b", "2"))
    assert rig.telemetry.gated == [("failed", "invalid_json")]


async def test_with_error_the_client_gets_a_502() -> None:
    """No bad answer reaches it."""
    rig = gated_rig(gated(on_exhausted=OnExhausted.ERROR))
    rig.dispatcher.answer("a", says(BAD))
    rig.dispatcher.answer("b", says(WORSE))
    decision_id = await begun(rig)
    told = await relayed(rig, decision_id, STAND_IN)
    assert (told.status, quality(told)) == (502, ("failed", "b", "2"))
    assert orjson.loads(told.body)["error"] == {
        "message": "No backend gave an answer that passes the quality gate.",
        "type": "upstream_error",
        "param": None,
        "code": "quality_gate_failed",
    }
    outcome = settled(rig, decision_id).outcome
    assert (outcome.failure, outcome.usage, outcome.attempts) == ("quality_gate_failed", None, 2)
    assert rig.in_flight() == IDLE


def _down(rig: EngineRig) -> None:
    rig.engine.set_health("b", Health.DOWN)


def _tripped(rig: EngineRig) -> None:
    rig.engine.pool["b"].error(rig.clock.now_s, rig.clock.now_s)
    assert rig.engine.pool["b"].state.tripped


def _full(rig: EngineRig) -> None:
    for _ in range(64):
        rig.engine.pool["b"].acquire()


def _paused(rig: EngineRig) -> None:
    rig.engine.pool["b"].pause(rig.clock.now_s + 1)


def _no_place(rig: EngineRig) -> None:
    assert [rig.engine._failover._budget.take(0) for _ in range(11)] == [True] * 10 + [False]


UNAVAILABLE = [_down, _tripped, _full, _paused, _no_place]


def _guarded() -> EngineRig:
    breaker = CircuitBreaker(error_threshold=1, window_s=10.0)
    return gated_rig(gated(backend("a"), replace(backend("b"), circuit_breaker=breaker)))


@pytest.mark.parametrize("make", UNAVAILABLE)
async def test_a_fallback_that_takes_no_request_is_not_asked(make: Callable[[EngineRig], None]) -> None:
    """The client gets the cheap answer, and is told that it is bad."""
    rig, bad = _guarded(), says(BAD)
    rig.dispatcher.answer("a", bad)
    make(rig)
    told = await asked(rig)
    assert (told.status, told.body, quality(told)) == (200, body_of(bad), ("failed", "a", ""))
    assert (calls(rig), rig.telemetry.gated) == (["a"], [("failed", "invalid_json")])
    assert len(rig.telemetry.unretried) == int(make is _no_place)


async def test_a_full_fallback_is_asked_again_when_it_has_room() -> None:
    """63 of its 64 places are taken."""
    rig = gated_rig()
    _full(rig)
    rig.engine.pool["b"].release()
    rig.dispatcher.answer("a", says(BAD))
    rig.dispatcher.answer("b", says(GOOD))
    assert quality(await asked(rig)) == ("fallback", "b", "2")


async def test_with_error_a_bad_answer_is_refused_also_where_nobody_else_could_be_asked() -> None:
    """The backend that was asked is named."""
    rig = gated_rig(gated(on_exhausted=OnExhausted.ERROR))
    _down(rig)
    rig.dispatcher.answer("a", says(BAD))
    told = await asked(rig)
    assert (told.status, quality(told)) == (502, ("failed", "a", ""))


@pytest.mark.parametrize(
    "failed",
    [
        error(500),
        error(429),
        None,
        error(400),
        error(302),
        CannedAnswer(503, flags=("UF",)),
        CannedAnswer(200, JSON, (b"{",), cut=True),
    ],
)
async def test_where_the_fallback_fails_the_client_gets_the_cheap_answer(failed: CannedAnswer | None) -> None:
    """Bad as it is: it is an answer. That the fallback was asked is told."""
    rig, bad = gated_rig(), says(BAD)
    rig.dispatcher.answer("a", bad)
    rig.dispatcher.answer("b", failed)
    told = await asked(rig)
    assert (told.status, told.body, quality(told)) == (200, body_of(bad), ("failed", "a", "2"))
    assert rig.telemetry.gated == [("failed", "invalid_json")]
    assert rig.in_flight() == IDLE


async def test_an_error_of_the_fallback_that_may_not_be_held_is_no_answer_either() -> None:
    """The rest of it is not read."""
    rig, bad = gated_rig(gated(max_body_bytes=200)), says(BAD)
    large = CannedAnswer(400, JSON, (b"x" * 201, b"y"))
    rig.dispatcher.answer("a", bad)
    rig.dispatcher.answer("b", large)
    told = await asked(rig)
    assert (told.status, told.body, quality(told)) == (200, body_of(bad), ("failed", "a", "2"))
    assert (large.closed, rig.in_flight()) == (True, IDLE)


@pytest.mark.parametrize(("seconds", "asks"), [(119.5, ["a", "b"]), (120.0, ["a"])])
async def test_without_time_left_the_fallback_is_not_asked(seconds: float, asks: list[str]) -> None:
    """``default_timeout`` is one for both, and a backend that had no time is not to blame."""
    rig = gated_rig()
    rig.dispatcher.answer("a", Acting(200, JSON, says(BAD).body, acts=lambda: rig.clock.advance(seconds)))
    rig.dispatcher.answer("b", says(GOOD))
    told = await asked(rig)
    assert calls(rig) == asks
    assert quality(told) == (("fallback", "b", "2") if "b" in asks else ("failed", "a", ""))


# When the cheap backend fails


@pytest.mark.parametrize(
    "failed",
    [
        error(500),
        error(429),
        None,
        CannedAnswer(503, flags=("UF",)),
        CannedAnswer(200, JSON, (b"{",), cut=True),
    ],
)
async def test_a_failure_leads_to_the_fallback(failed: CannedAnswer | None) -> None:
    """Where the request's own candidates are used up."""
    rig, better = gated_rig(), says(GOOD)
    rig.dispatcher.answer("a", failed)
    rig.dispatcher.answer("b", better)
    told = await asked(rig)
    assert (told.status, told.body, quality(told)) == (200, body_of(better), ("fallback", "b", "2"))
    assert (rig.telemetry.gated, rig.telemetry.moves) == ([("fallback", "upstream")], [("a", "b", "upstream")])


async def test_a_backend_that_is_gone_needs_no_place_in_the_budget() -> None:
    """As in any failover: the load is what it was."""
    rig = gated_rig()
    _no_place(rig)
    rig.dispatcher.answer("a", None)
    rig.dispatcher.answer("b", says(GOOD))
    assert quality(await asked(rig)) == ("fallback", "b", "2")
    assert rig.telemetry.unretried == []


async def test_other_candidates_of_the_request_come_before_the_fallback() -> None:
    """An answer of theirs that is good is as good as the first one's."""
    rig = gated_rig(gated(backend("a"), backend("b"), backend("c"), chain=("a", "c")))
    rig.dispatcher.answer("a", error(500), error(500))
    rig.dispatcher.answer("c", says(GOOD), says(BAD))
    rig.dispatcher.answer("b", says(BETTER))
    assert quality(await asked(rig)) == ("passed", "c", "2")
    assert quality(await asked(rig)) == ("fallback", "b", "3")
    assert calls(rig) == ["a", "c", "a", "c", "b"]


@pytest.mark.parametrize(("text", "word"), [(GOOD, "fallback"), (BAD, "failed")])
async def test_a_failover_to_the_fallback_is_one_rescue(text: str, word: str) -> None:
    """Where it is among the request's own candidates it is not asked twice."""
    rig, answer = gated_rig(gated(chain=("a", "b"))), says(text)
    rig.dispatcher.answer("a", error(500))
    rig.dispatcher.answer("b", answer)
    told = await asked(rig)
    assert (told.body, quality(told), calls(rig)) == (body_of(answer), (word, "b", "2"), ["a", "b"])


@pytest.mark.parametrize("status", [302, 400, 404, 422])
async def test_an_error_of_the_client_is_passed_on(status: int) -> None:
    """It would be the fallback's as well; nobody looked at it."""
    rig = gated_rig()
    rig.dispatcher.answer("a", error(status))
    told = await asked(rig)
    assert (told.status, told.body, quality(told)) == (status, b'{"error":"mine"}', ("skipped", "a", ""))
    assert (calls(rig), rig.telemetry.gate_times) == (["a"], [])


@pytest.mark.parametrize("fallback", [None, error(500), error(400)])
async def test_where_both_fail_the_client_gets_the_cheap_backends_error(fallback: CannedAnswer | None) -> None:
    """With ``error`` too: a failure is no answer that did not pass."""
    for on_exhausted in OnExhausted:
        rig = gated_rig(gated(on_exhausted=on_exhausted))
        rig.dispatcher.answer("a", failing(500))
        rig.dispatcher.answer("b", fallback)
        told = await asked(rig)
        assert (told.status, told.body, quality(told)) == (500, b'{"error":"mine"}', ("failed", "a", "2"))
        assert rig.telemetry.gated == [("failed", "upstream")]
