"""Whose answer the quality gate looks at, and what is told where it does not."""

from dataclasses import replace

import orjson
import pytest

from router_ext.config.sections import OnExhausted, QualityGate, Streaming
from router_ext.engine.limits import KeptBytes
from router_ext.model.gate import Checks, SchemaVerdict
from router_ext.stream.effects import Forward
from router_ext.stream.events import RequestHead
from tests.fakes.domain import head
from tests.fakes.rig import BODY, EngineRig
from tests.unit.engine.gated import (
    BAD,
    GOOD,
    SCHEMA,
    WITH_SCHEMA,
    asked,
    calls,
    choices,
    gated,
    gated_rig,
    quality,
    says,
)
from tests.unit.engine.relays import STREAM

BODY_WITH_SCHEMA = (
    b'{"model":"m-a","messages":[{"role":"user","content":"hi"}],'
    b'"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type": "array"}}}}'
)
QUALITY = ("x-kronaxis-quality", "x-kronaxis-schema")


def _never(**changes: object) -> EngineRig:
    """A router that draws nobody: only a schema makes it look."""
    return EngineRig(gated(sample_rate=0.0, **changes))  # type: ignore[arg-type]


async def _plan(rig: EngineRig, body: bytes = BODY, head_: RequestHead | None = None) -> Forward:
    plan = await rig.engine.plan(head_ or head(), body)
    assert isinstance(plan, Forward), plan
    return plan


def _told(plan: Forward) -> dict[str, str]:
    """What the client is told of the gate by an answer that Envoy passes on."""
    return {name: value for name, value in plan.response_edits.set if name in QUALITY}


# Enabled, drawn, or brought by a schema


async def test_a_gate_that_is_not_enabled_looks_at_nothing() -> None:
    """A schema changes nothing: Envoy passes the answer on, and nothing is said of its quality."""
    config = gated()
    rig = gated_rig(replace(config, quality_gate=replace(config.quality_gate, enabled=False)))
    plan = await _plan(rig, BODY_WITH_SCHEMA, WITH_SCHEMA)
    assert (plan.relay, _told(plan), rig.telemetry.gated) == (False, {}, [])


def test_the_gate_is_off_by_default() -> None:
    """And where it is not configured further it looks at all answers, one after the other, and returns bad ones."""
    gate = QualityGate()
    assert (gate.enabled, gate.sample_rate, gate.mode, gate.streaming) == (False, 1.0, "sequential", None)
    assert gate.on_exhausted is OnExhausted.RETURN


@pytest.mark.parametrize(
    ("sample_rate", "draw", "relay"),
    [(0.3, 0.29, True), (0.3, 0.3, False), (0.0, 0.0, False), (1.0, 0.999, True)],
)
async def test_a_share_of_the_answers_is_looked_at(sample_rate: float, draw: float, relay: bool) -> None:
    """A draw below the rate is; of the others nothing is said."""
    rig = EngineRig(gated(sample_rate=sample_rate), draw=lambda: draw)
    plan = await _plan(rig)
    assert (plan.relay, _told(plan)) == (relay, {})


async def test_an_answer_to_a_schema_is_looked_at_whatever_the_draw() -> None:
    """Be it in the header or in the body; the header wins."""
    rig = _never()
    assert not (await _plan(rig)).relay
    for body, head_, schema in (
        (BODY, WITH_SCHEMA, SCHEMA.encode()),
        (BODY_WITH_SCHEMA, head(), b'{"type": "array"}'),
        (BODY_WITH_SCHEMA, WITH_SCHEMA, SCHEMA.encode()),
    ):
        rig.dispatcher.answer("a", says(GOOD))
        told = await asked(rig, body, head_)
        assert quality(told) == ("passed", "a", "")
        assert rig.judge.asked[-1] == (schema, GOOD)
    assert rig.telemetry.verdicts == [SchemaVerdict.VALID] * 3


async def test_json_without_a_schema_is_no_validation() -> None:
    """It is judged all the same."""
    rig = gated_rig()
    rig.dispatcher.answer("a", says(GOOD))
    assert quality(await asked(rig)) == ("passed", "a", "")
    assert rig.judge.asked == [(None, GOOD)]
    assert rig.telemetry.verdicts == []


async def test_an_answer_that_need_not_be_json_is_not_parsed() -> None:
    """The other checks do."""
    rig = gated_rig(gated(checks=Checks(min_length=3)))
    rig.dispatcher.answer("a", says("one"))
    assert quality(await asked(rig)) == ("passed", "a", "")
    assert rig.judge.asked == []


@pytest.mark.parametrize(
    ("path", "relay"),
    [
        ("/v1/chat/completions", True),
        ("/v1/completions", True),
        ("/v1/responses", False),
        ("/v1/messages", False),
        ("/v1/embeddings", False),
    ],
)
async def test_only_completions_are_looked_at(path: str, relay: bool) -> None:
    """Of other APIs nothing is said, also when a schema came."""
    rig = gated_rig()
    plan = await _plan(rig, BODY, head(path, x_kronaxis_response_schema=SCHEMA))
    assert (plan.relay, _told(plan)) == (relay, {})


async def test_an_answer_of_the_old_completions_api_is_judged() -> None:
    """Its choices have a ``text``."""
    rig, answer = gated_rig(), choices()
    answer.body = (orjson.dumps({"choices": [{"index": 0, "text": GOOD, "finish_reason": "stop"}]}),)
    rig.dispatcher.answer("a", answer)
    assert quality(await asked(rig, b'{"model":"m-a","prompt":"hi"}', head("/v1/completions")))[0] == "passed"
    assert rig.judge.asked == [(None, GOOD)]


@pytest.mark.parametrize(
    ("head_", "told"), [(head(), {}), (WITH_SCHEMA, {"x-kronaxis-quality": "skipped"})], ids=["sampled", "schema"]
)
async def test_a_request_that_goes_to_the_fallback_itself_is_not_looked_at(
    head_: RequestHead, told: dict[str, str]
) -> None:
    """Nobody could better its answer; a client that brought a schema is told."""
    plan = await _plan(gated_rig(gated(chain=("b",))), BODY, head_)
    assert (plan.relay, plan.metadata["backend"], _told(plan)) == (False, "b", told)


# Streams


@pytest.mark.parametrize(
    ("streaming", "head_", "relay", "told"),
    [
        (None, head(), False, {}),
        (None, WITH_SCHEMA, True, {}),
        (Streaming.HOLD, head(), True, {}),
        (Streaming.HOLD, WITH_SCHEMA, True, {}),
        (Streaming.OBSERVE, head(), True, {}),
        (Streaming.OBSERVE, WITH_SCHEMA, True, {}),
        (Streaming.SKIP, head(), False, {}),
        (Streaming.SKIP, WITH_SCHEMA, False, {"x-kronaxis-quality": "skipped"}),
    ],
)
async def test_streams_come_through_the_router_where_they_are_looked_at(
    streaming: Streaming | None, head_: RequestHead, relay: bool, told: dict[str, str]
) -> None:
    """By default those with a schema are held, and others pass; a schema that nobody looks at is told."""
    plan = await _plan(gated_rig(gated(streaming=streaming)), STREAM, head_)
    assert (plan.relay, _told(plan)) == (relay, told)


@pytest.mark.parametrize("streaming", [None, *Streaming])
async def test_how_streams_are_looked_at_is_nothing_to_plain_answers(streaming: Streaming | None) -> None:
    """They are held in any case."""
    rig = gated_rig(gated(streaming=streaming))
    rig.dispatcher.answer("a", says(GOOD))
    assert quality(await asked(rig)) == ("passed", "a", "")


# What makes looking impossible


@pytest.mark.parametrize("schema", ["no schema", "{", ""])
async def test_a_schema_that_is_no_json_is_told_and_counted(schema: str) -> None:
    """The request is still good: its answer passes as it is."""
    rig = gated_rig()
    plan = await _plan(rig, BODY, head(x_kronaxis_response_schema=schema))
    assert plan.relay is False
    assert _told(plan) == {"x-kronaxis-quality": "skipped", "x-kronaxis-schema": "invalid"}
    assert rig.telemetry.gated == [("skipped", "bad_schema")]


async def test_a_schema_that_the_judge_refuses_is_told_at_once() -> None:
    """No answer is held for it."""
    rig = gated_rig()
    rig.judge.refused.add(SCHEMA.encode())
    plan = await _plan(rig, BODY, WITH_SCHEMA)
    assert (plan.relay, _told(plan)) == (False, {"x-kronaxis-quality": "skipped", "x-kronaxis-schema": "invalid"})
    assert rig.telemetry.gated == [("skipped", "bad_schema")]


async def test_a_schema_that_proves_useless_lets_the_answer_pass() -> None:
    """The fallback is not asked: it would be judged by the same schema."""
    rig = gated_rig()
    rig.judge.verdicts[GOOD] = SchemaVerdict.BAD_SCHEMA
    rig.dispatcher.answer("a", says(GOOD))
    told = await asked(rig, BODY, WITH_SCHEMA)
    assert (quality(told), told.headers["x-kronaxis-schema"]) == (("skipped", "a", ""), "invalid")
    assert rig.telemetry.gated == [("skipped", "bad_schema")]
    assert calls(rig) == ["a"]


async def test_a_request_that_cannot_be_kept_is_not_looked_at() -> None:
    """It could not be sent to the fallback."""
    rig = gated_rig()
    rig.engine._kept_bytes = KeptBytes(len(BODY))
    assert (await _plan(rig)).relay
    plan = await _plan(rig)
    assert (plan.relay, _told(plan)) == (False, {"x-kronaxis-quality": "skipped"})


async def test_where_the_router_cannot_bring_answers_none_is_looked_at() -> None:
    """In Envoy's other body modes."""
    rig = gated_rig()
    plan = await rig.engine.plan(head(), BODY, can_relay=False)
    assert isinstance(plan, Forward)
    assert (plan.relay, _told(plan)) == (False, {"x-kronaxis-quality": "skipped"})


# What backends see


async def test_no_backend_sees_the_schema_header() -> None:
    """Neither the cheap one nor the fallback, nor one that Envoy asks; the body's schema stays."""
    rig = gated_rig()
    rig.dispatcher.answer("a", says(BAD))
    rig.dispatcher.answer("b", says(GOOD))
    await asked(rig, BODY_WITH_SCHEMA, WITH_SCHEMA)
    assert [name for call in rig.dispatcher.calls for name, _ in call.headers if name.startswith("x-kronaxis")] == []
    assert [b"json_schema" in call.body for call in rig.dispatcher.calls] == [True, True]
    plan = await _plan(gated_rig(gated(chain=("b",))), BODY, WITH_SCHEMA)
    assert "x-kronaxis-response-schema" in plan.edits.remove


async def test_a_refused_request_is_not_looked_at() -> None:
    """It has no answer."""
    rig = gated_rig()
    plan = await rig.engine.plan(WITH_SCHEMA, b"{")
    assert not isinstance(plan, Forward)
    assert rig.telemetry.gated == []
