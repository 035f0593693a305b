"""Streams that the quality gate holds back, and answers that are larger than may be held."""

import orjson
import pytest

from router_ext.config.sections import OnExhausted, Streaming
from router_ext.model.snapshot import Health
from router_ext.stream.effects import RelayHead
from tests.fakes.dispatcher import CannedAnswer, event_stream
from tests.fakes.session_turns import events
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
    error,
    gated,
    gated_rig,
    quality,
    says,
    streams,
)
from tests.unit.engine.relays import (
    DONE,
    ERROR,
    JSON,
    LAST,
    ROLE,
    STREAM,
    TOKEN,
    Acting,
    begun,
)

# Streams that are held


async def test_a_good_stream_is_released_as_it_came() -> None:
    """Whole, after its end, as events that end in ``[DONE]``."""
    rig, log = gated_rig(), list[str]()
    pieces = events('{"n"', ":1}")
    kind = (("content-type", "text/event-stream"),)
    rig.dispatcher.answer("a", Acting(200, kind, pieces, acts=lambda: log.append("piece")))
    parts = rig.engine.relay(await begun(rig, STREAM, WITH_SCHEMA), STAND_IN)
    told = b""
    async for part in parts:
        log.append("part")
        if isinstance(part, RelayHead):
            assert dict(part.edits.set)["content-type"] == "text/event-stream"
            assert dict(part.edits.set)["x-kronaxis-quality"] == "passed"
        else:
            told += part.data
    assert told == b"".join(pieces)
    assert told.endswith(DONE)
    assert log[: len(pieces)] == ["piece"] * len(pieces)
    assert set(log[len(pieces) :]) == {"part"}
    assert rig.judge.asked == [(b'{"type":"object"}', GOOD)]


async def test_of_a_bad_stream_the_client_sees_nothing() -> None:
    """It gets the fallback's stream only."""
    rig, better = gated_rig(), streams('{"n"', ":2}")
    rig.dispatcher.answer("a", streams("no ", "JSON"))
    rig.dispatcher.answer("b", better)
    told = await asked_stream(rig)
    assert (told.body, quality(told)) == (body_of(better), ("fallback", "b", "2"))
    assert told.body.endswith(DONE)
    assert told.headers["content-type"] == "text/event-stream"


@pytest.mark.parametrize(
    "failed",
    [
        event_stream(ROLE, TOKEN, cut=True),
        event_stream(ROLE, cut=True),
        event_stream(ROLE, TOKEN, ERROR, DONE),
        event_stream(ROLE, ERROR, DONE),
        event_stream(ROLE, TOKEN),
        event_stream(),
        error(500),
        None,
    ],
)
async def test_a_stream_that_breaks_leads_to_the_fallback(failed: CannedAnswer | None) -> None:
    """Also after its first token, since the client has not seen it."""
    rig, better = gated_rig(), streams(GOOD)
    rig.dispatcher.answer("a", failed)
    rig.dispatcher.answer("b", better)
    told = await asked_stream(rig)
    assert (told.body, quality(told)) == (body_of(better), ("fallback", "b", "2"))
    assert rig.telemetry.gated == [("fallback", "upstream")]
    assert failed is None or failed.closed


async def test_a_stream_that_is_cut_after_its_last_word_is_whole() -> None:
    """Nothing of it is missing."""
    rig, answer = gated_rig(), streams(GOOD, cut=True)
    rig.dispatcher.answer("a", answer)
    told = await asked_stream(rig)
    assert (told.body, quality(told)) == (body_of(answer), ("passed", "a", ""))


async def test_where_the_fallbacks_stream_breaks_the_client_gets_the_cheap_one() -> None:
    """Bad as it is."""
    rig, bad = gated_rig(), streams(BAD)
    rig.dispatcher.answer("a", bad)
    rig.dispatcher.answer("b", event_stream(ROLE, TOKEN, cut=True))
    told = await asked_stream(rig)
    assert (told.body, quality(told)) == (body_of(bad), ("failed", "a", "2"))
    assert rig.in_flight() == IDLE


async def test_with_error_a_streamed_request_gets_the_502_as_well() -> None:
    """No stream has begun."""
    rig = gated_rig(gated(on_exhausted=OnExhausted.ERROR))
    rig.dispatcher.answer("a", streams(BAD))
    rig.dispatcher.answer("b", streams(WORSE))
    told = await asked_stream(rig)
    assert (told.status, told.headers["content-type"]) == (502, "application/json")


async def test_a_stream_that_hangs_is_given_up_in_time() -> None:
    """95 % of ``stream_idle_timeout``, after which Envoy would end the request; then nobody has time to help."""
    rig = gated_rig(gated(stream_idle_timeout_s=100.0))
    hanging = Acting(200, (("content-type", "text/event-stream"),), (ROLE, TOKEN), hangs=True)
    hanging.acts = lambda: rig.clock.advance(47.5)
    rig.dispatcher.answer("a", hanging)
    told = await asked_stream(rig)
    assert (told.status, b'"code":"upstream_timeout"' in told.body, hanging.closed) == (504, True, True)
    assert (quality(told), rig.telemetry.gated) == (("failed", "a", ""), [("failed", "upstream")])


async def test_a_plain_answer_to_a_streamed_request_is_looked_at_as_well() -> None:
    """Some engines do not stream what they could."""
    rig, answer = gated_rig(), says(GOOD)
    rig.dispatcher.answer("a", answer)
    told = await asked_stream(rig)
    assert (told.body, quality(told)) == (body_of(answer), ("passed", "a", ""))


@pytest.mark.parametrize("streaming", [None, Streaming.HOLD])
async def test_every_choice_of_a_stream_is_looked_at(streaming: Streaming | None) -> None:
    """The second one is bad."""

    def said(index: int, text: str) -> bytes:
        choice = {"index": index, "delta": {"content": text}, "finish_reason": "stop"}
        return b"data: " + orjson.dumps({"choices": [choice]}) + b"\n\n"

    rig = gated_rig(gated(streaming=streaming))
    rig.dispatcher.answer("a", event_stream(said(0, GOOD), said(1, BAD), DONE))
    rig.dispatcher.answer("b", event_stream(said(0, GOOD), said(1, GOOD), DONE))
    assert quality(await asked_stream(rig)) == ("fallback", "b", "2")


# Answers that are larger than may be held


@pytest.mark.parametrize(("limit", "word"), [(128, "passed"), (127, "skipped")])
async def test_a_plain_answer_of_the_size_that_may_be_held_is_looked_at(limit: int, word: str) -> None:
    """Of a larger one nobody knows the end: it is passed on as it comes."""
    answer = says(GOOD, None)
    answer.body = (answer.body[0].ljust(127), b" ")
    rig = gated_rig(gated(max_body_bytes=limit))
    rig.dispatcher.answer("a", answer)
    told = await asked(rig)
    assert (told.body, quality(told)) == (body_of(answer), (word, "a", ""))
    assert len(rig.telemetry.gate_times) == int(word == "passed")


async def test_a_large_stream_is_passed_on() -> None:
    """One byte more than may be held, then the rest as it comes."""
    pieces = (ROLE, TOKEN, TOKEN, TOKEN, LAST, DONE)
    whole = sum(map(len, pieces))
    for limit, word in ((whole, "failed"), (whole - 1, "skipped"), (len(ROLE + TOKEN), "skipped")):
        rig = gated_rig(gated(max_body_bytes=limit))
        rig.engine.set_health("b", Health.DOWN)
        rig.dispatcher.answer("a", event_stream(*pieces))
        told = await asked_stream(rig)
        assert (told.body, told.ends[-1], quality(told)) == (b"".join(pieces), True, (word, "a", ""))


async def test_a_large_answer_of_the_fallback_is_passed_on() -> None:
    """Nobody looked at it, and it is more likely good than what was seen to be bad."""
    rig, large = gated_rig(gated(max_body_bytes=250)), CannedAnswer(200, JSON, (b"x" * 251, b"y"))
    rig.dispatcher.answer("a", says(BAD))
    rig.dispatcher.answer("b", large)
    told = await asked(rig)
    assert (told.body, quality(told)) == (b"x" * 251 + b"y", ("skipped", "b", "2"))
    assert rig.telemetry.gated == [("skipped", "invalid_json")]
    assert rig.in_flight() == IDLE
