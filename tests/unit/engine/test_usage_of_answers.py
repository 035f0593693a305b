"""What is booked for answers: the engine's counts, else what their bytes stand for. A token costs a micro-dollar."""

from dataclasses import replace

import pytest

from router_ext.config.sections import Budget, RouterConfig, Server, UsageMode
from router_ext.model.backend import BackendType
from router_ext.model.outcome import StreamEnd, Usage
from router_ext.stream.effects import Forward
from tests.fakes.dispatcher import event_stream
from tests.fakes.domain import backend, head, record, router
from tests.fakes.rig import BODY, EngineRig
from tests.fakes.session_turns import CREATE, body_of, events, user, with_sessions
from tests.unit.engine.gated import BAD, GOOD, STAND_IN, asked_stream, gated, gated_rig, streams
from tests.unit.engine.relays import (
    BROKEN,
    DONE,
    LAST,
    ROLE,
    STREAM,
    TOKEN,
    USAGE,
    begun,
    failing,
    relayed,
    settled,
)

SHOP = head(x_kronaxis_service="shop")
PROMPT = -(-len(STREAM) // 4)
ASKED = b'{"stream_options":{"include_usage":true},' + STREAM[1:]
BUDGETS = (Budget("shop", 1.0),)


def _config(*budgets: Budget, usage: UsageMode | None = None, kind: BackendType = BackendType.VLLM) -> RouterConfig:
    made = router(backend("a", cost=1.0, engine=kind), backend("b", cost=1.0))
    return replace(made, budgets=budgets, server=Server(usage=usage))


def _costs(rig: EngineRig) -> list[int]:
    return [micro_usd for _, _, _, micro_usd in rig.telemetry.charges]


# Estimates


@pytest.mark.parametrize(
    ("flags", "end"), [((), StreamEnd.WHOLE), (("UC",), StreamEnd.UNKNOWN), (("DC",), StreamEnd.UNKNOWN)]
)
def test_a_stream_without_counts_is_estimated_whole_or_cut(flags: tuple[str, ...], end: StreamEnd) -> None:
    """Whoever cut it, what was generated was paid for: 450 bytes are two tokens."""
    rig = EngineRig(_config())
    decision_id = rig.forward(STREAM).metadata["id"]
    rig.engine.first_token(decision_id)
    rig.engine.settle(record(decision_id, usage=None, response_bytes=450, flags=flags, stream_end=end))
    assert (_costs(rig), rig.telemetry.estimated) == ([PROMPT + 2], ["a"])
    outcome = rig.telemetry.ends[0].outcome
    assert (outcome.usage, outcome.estimated) == (Usage(PROMPT, 2), True)


def test_a_stream_that_failed_before_its_first_token_is_not_booked() -> None:
    """An error event is no answer."""
    rig = EngineRig(_config())
    decision_id = rig.forward(STREAM).metadata["id"]
    rig.engine.settle(record(decision_id, usage=None, response_bytes=450, stream_end=StreamEnd.ERROR))
    assert (_costs(rig), rig.telemetry.estimated) == ([], [])


@pytest.mark.parametrize(
    ("status", "size", "costs"), [(200, 0, []), (200, 1, [1]), (299, 1, [1]), (300, 1, []), (404, 9, [])]
)
def test_an_answer_is_a_2xx_with_a_body(status: int, size: int, costs: list[int]) -> None:
    """Errors cost nothing; the smallest answer is one token."""
    rig = EngineRig(_config())
    decision_id = rig.forward(BODY).metadata["id"]
    rig.engine.settle(record(decision_id, status, usage=None, response_bytes=size))
    assert _costs(rig) == [-(-len(BODY) // 4) + tokens for tokens in costs]


def test_embeddings_are_estimated_by_their_prompt() -> None:
    """Some engines report nothing for them."""
    rig = EngineRig(_config())
    decision_id = rig.forward(b'{"model":"m-a","input":"hi"}', head("/v1/embeddings")).metadata["id"]
    rig.engine.settle(record(decision_id, usage=None, response_bytes=90_000))
    assert (_costs(rig), rig.telemetry.estimated) == ([7], ["a"])


def test_what_is_no_inference_is_not_estimated() -> None:
    """A list of models is no answer."""
    rig = EngineRig(_config())
    decision_id = rig.forward(None, head("/v1/audio/speech")).metadata["id"]
    rig.engine.settle(record(decision_id, usage=None))
    assert _costs(rig) == []


def test_a_stream_whose_request_nobody_saw_is_known_by_its_end() -> None:
    """450 bytes are two tokens there too, and the request counts as it came over the wire."""
    rig = EngineRig(_config())
    decision_id = rig.forward(None).metadata["id"]
    rig.engine.settle(record(decision_id, usage=None, request_bytes=80, response_bytes=450, stream_end=StreamEnd.WHOLE))
    assert _costs(rig) == [22]


def test_exact_answers_teach_the_estimate() -> None:
    """4,050 assumed and 1,000 seen bytes were 18 and 20 tokens, so 505 bytes are four; an answer that was cut teaches
    nothing.
    """
    rig = EngineRig(_config())
    for size, usage, flags in ((1000, Usage(10, 20), ()), (9000, Usage(10, 1), ("UC",)), (505, None, ())):
        decision_id = rig.forward(STREAM).metadata["id"]
        rig.engine.first_token(decision_id)
        rig.engine.settle(record(decision_id, usage=usage, response_bytes=size, flags=flags))
    prompt = -(-len(STREAM) * 28 // (72 + len(STREAM)))
    assert _costs(rig) == [30, 11, prompt + 4]
    assert rig.telemetry.estimated == ["a"]


# Exact


async def _counted(rig: EngineRig, *body: bytes, request: bytes = STREAM) -> bytes:
    """What the client of the shop gets of a stream."""
    rig.dispatcher.answer("a", event_stream(*body))
    decision_id = await begun(rig, request, SHOP)
    told = await relayed(rig, decision_id, STAND_IN)
    settled(rig, decision_id)
    return told.body


async def test_a_stream_under_a_budget_is_booked_as_the_engine_counts_it() -> None:
    """The backend is asked, and the client sees nothing of that."""
    rig = EngineRig(_config(*BUDGETS))
    assert await _counted(rig, ROLE + TOKEN, LAST + USAGE + DONE) == ROLE + TOKEN + LAST + DONE
    assert [call.body for call in rig.dispatcher.calls] == [ASKED]
    assert (_costs(rig), rig.telemetry.estimated) == ([10], [])


async def test_the_usage_event_is_taken_out_wherever_it_is_cut() -> None:
    """Each byte by itself."""
    rig = EngineRig(_config(*BUDGETS))
    wire = ROLE + TOKEN + LAST + USAGE + DONE
    assert await _counted(rig, *(wire[at : at + 1] for at in range(len(wire)))) == ROLE + TOKEN + LAST + DONE
    assert _costs(rig) == [10]


async def test_counts_that_grow_from_event_to_event_count_once() -> None:
    """The last ones."""
    pieces = [TOKEN[:-3] + b',"usage":{"prompt_tokens":9,"completion_tokens":%d}}\n\n' % count for count in (1, 2, 3)]
    rig = EngineRig(_config(*BUDGETS))
    assert await _counted(rig, *pieces, LAST, DONE) == b"".join(pieces) + LAST + DONE
    assert _costs(rig) == [12]


async def test_a_stream_that_breaks_is_estimated_and_ends_with_an_error() -> None:
    """Nothing of the usage event that was torn is left."""
    rig = EngineRig(_config(*BUDGETS))
    rig.dispatcher.answer("a", event_stream(ROLE + TOKEN, cut=True))
    decision_id = await begun(rig, STREAM, SHOP)
    assert (await relayed(rig, decision_id, STAND_IN)).body == ROLE + TOKEN + BROKEN
    settled(rig, decision_id, response_bytes=450)
    assert (_costs(rig), rig.telemetry.estimated) == ([PROMPT + 2], ["a"])
    rig.dispatcher.answer("a", event_stream(ROLE + TOKEN + LAST + USAGE[:40], cut=True))
    assert (await relayed(rig, await begun(rig, STREAM, SHOP), STAND_IN)).body == ROLE + TOKEN + LAST


@pytest.mark.parametrize(
    ("config", "relays"),
    [
        (_config(), False),
        (_config(*BUDGETS), True),
        (_config(Budget("default", 1.0)), True),
        (_config(Budget("other", 1.0)), True),
        (_config(Budget("lab", 1.0)), False),
        (_config(usage=UsageMode.EXACT), True),
        (_config(*BUDGETS, usage=UsageMode.ESTIMATE), False),
        (_config(Budget("shop", 1.0, usage=UsageMode.ESTIMATE), usage=UsageMode.EXACT), False),
        (_config(Budget("shop", 1.0, usage=UsageMode.EXACT), usage=UsageMode.ESTIMATE), True),
        (_config(Budget("shop", 1.0, usage=UsageMode.ESTIMATE), Budget("default", 1.0)), False),
        (_config(*BUDGETS, kind=BackendType.GEMINI), False),
    ],
)
def test_the_router_brings_the_stream_where_it_asks(config: RouterConfig, relays: bool) -> None:
    """The budget says, else the server, else whether there is one, which for unnamed services may be that of ``other``.
    A type that may refuse the question is not asked.
    """
    assert EngineRig(config).forward(STREAM, SHOP).relay is relays


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", ASKED),
        ("/v1/chat/completions", BODY),
        ("/v1/responses", STREAM),
        ("/v1/messages", STREAM),
    ],
)
def test_who_is_told_the_counts_anyway_is_left_alone(path: str, body: bytes) -> None:
    """A client that asked, plain answers, and the APIs whose streams report them."""
    plan = EngineRig(_config(*BUDGETS)).forward(body, head(path, x_kronaxis_service="shop"))
    assert (plan.relay, plan.body) == (False, None)


async def test_a_request_that_cannot_be_kept_is_estimated() -> None:
    """As where Envoy's body modes leave no way for another answer."""
    rig = EngineRig(_config(*BUDGETS))
    plan = await rig.engine.plan(SHOP, STREAM, can_relay=False)
    assert isinstance(plan, Forward)
    assert (plan.relay, plan.body) == (False, None)


async def test_after_a_failover_the_next_backend_is_asked_by_its_type() -> None:
    """One that may refuse gets the body as it came, and its stream is not touched."""
    config = _config(*BUDGETS)
    gemini = backend("b", cost=1.0, engine=BackendType.GEMINI)
    rig = EngineRig(replace(config, backends=(config.backends[0], gemini)))
    rig.dispatcher.answer("a", failing(503))
    rig.dispatcher.answer("b", event_stream(TOKEN, LAST, USAGE, DONE))
    decision_id = await begun(rig, STREAM, SHOP)
    assert (await relayed(rig, decision_id, STAND_IN)).body == TOKEN + LAST + USAGE + DONE
    assert [call.body for call in rig.dispatcher.calls] == [ASKED, STREAM]


async def test_a_session_keeps_the_counts_that_its_client_does_not_see() -> None:
    """The turn is kept with the engine's tokens: 9 and 1."""
    rig = EngineRig(with_sessions(_config(*BUDGETS)))
    rig.dispatcher.answer("a", event_stream(ROLE + TOKEN, LAST + USAGE, DONE))
    decision_id = await begun(rig, body_of(user("hi"), stream=True), head(x_kronaxis_service="shop", headers=CREATE))
    told = await relayed(rig, decision_id, STAND_IN)
    assert told.body == ROLE + TOKEN + LAST + DONE
    settled(rig, decision_id)
    assert _costs(rig) == [10]
    assert rig.sessions.sessions[told.headers["x-kronaxis-session-id"]].meta.tokens == 10


# The quality gate


def _gated(usage: UsageMode) -> EngineRig:
    config = gated()
    return gated_rig(replace(config, server=replace(config.server, usage=usage)))


async def test_streams_that_the_gate_holds_lose_the_usage_event_too() -> None:
    """The bad one and the fallback's, which is released; each is booked as its engine counted it."""
    rig = _gated(UsageMode.EXACT)
    rig.dispatcher.answer("a", streams(BAD))
    rig.dispatcher.answer("b", streams(GOOD))
    told = await asked_stream(rig)
    assert told.body == b"".join(events(GOOD, usage=None))
    assert [call.body for call in rig.dispatcher.calls] == [ASKED, ASKED]
    assert _costs(rig) == [10, 100]


async def test_a_bad_answer_without_counts_is_estimated_as_well() -> None:
    """By its own bytes, not by those that the client got."""
    rig = _gated(UsageMode.ESTIMATE)
    bad, good = events(BAD, usage=None), events(GOOD, usage=None)
    rig.dispatcher.answer("a", event_stream(*bad))
    rig.dispatcher.answer("b", event_stream(*good))
    assert (await asked_stream(rig)).body == b"".join(good)
    sizes = (len(b"".join(bad)), len(b"".join(good)))
    assert all(225 < size <= 450 for size in sizes), sizes
    assert _costs(rig) == [PROMPT + 2, 10 * (PROMPT + 2)]
    assert rig.telemetry.estimated == ["a", "b"]
