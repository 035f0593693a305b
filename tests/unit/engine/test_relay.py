"""Streams that come through the router: held until their first token, then passed on as they are."""

import asyncio
from contextlib import aclosing

import pytest

from router_ext.stream.effects import Forward, RelayBody, RelayHead
from router_ext.stream.events import ResponseHeaders
from tests.fakes.dispatcher import CannedAnswer, event_stream
from tests.fakes.domain import backend, head, record
from tests.fakes.rig import EngineRig
from tests.unit.engine.relays import (
    BROKEN,
    BROKEN_TYPED,
    DONE,
    ERROR,
    JSON,
    LAST,
    ROLE,
    STREAM,
    TOKEN,
    USAGE,
    Acting,
    begun,
    failing,
    relayed,
    settled,
    silent,
    trio,
)

SSE = (("content-type", "text/event-stream"),)
PARTIAL = b'data: {"choices":[{"ind'


def _rig(*, first_token_timeout_s: float = 60.0, max_attempts: int = 3) -> EngineRig:
    return EngineRig(silent(trio(max_attempts=max_attempts), first_token_timeout_s))


def _moves(rig: EngineRig) -> list[tuple[str, str, str]]:
    return rig.telemetry.moves


async def test_no_upstream_is_asked_before_the_router_asks_one() -> None:
    """Envoy gets a stand-in; the request counts in its backend all the same."""
    rig = _rig()
    plan = await rig.engine.plan(head(x_kronaxis_service="shop"), STREAM)
    assert plan == Forward(
        edits=plan.edits,  # type: ignore[union-attr]
        metadata={"id": "t-1", "rule": "default", "backend": "a", "service": "shop"},
        relay=True,
        wait_s=305.0,
    )
    assert plan.edits.set == (("x-kronaxis-cluster", "router-ext-relay"),)
    assert rig.in_flight() == {"a": 1, "b": 0, "c": 0}


@pytest.mark.parametrize(("body", "wait_s"), [(STREAM, 305.0), (b'{"model":"m-a"}', 125.0)])
async def test_envoy_waits_for_another_answer_as_long_as_for_its_own(body: bytes, wait_s: float) -> None:
    """``stream_idle_timeout`` for a stream, ``default_timeout`` for any other answer."""
    plan = await EngineRig(trio()).engine.plan(head(), body)
    assert isinstance(plan, Forward)
    assert (plan.failover, plan.relay, plan.wait_s) == (True, False, wait_s)


async def test_an_answer_is_released_at_its_first_token() -> None:
    """Not before, and what comes after it passes at once."""
    rig, log = _rig(), list[str]()
    body = (ROLE, ROLE, TOKEN, TOKEN, LAST)
    rig.dispatcher.answer("a", Acting(200, SSE, body, acts=lambda: log.append("piece")))
    async with aclosing(rig.engine.relay(await begun(rig, STREAM), ResponseHeaders(503, "", False))) as parts:
        async for part in parts:
            log.append("head" if isinstance(part, RelayHead) else f"body {len(part.data)}")
    opening = 2 * len(ROLE) + len(TOKEN)
    assert log == [
        *("piece", "piece", "piece", "head", f"body {opening}"),
        *("piece", f"body {len(TOKEN)}", "piece", f"body {len(LAST)}"),
        "body 0",
    ]


async def test_the_first_token_is_timed_from_the_start_of_its_attempt() -> None:
    """Not from the attempt that failed before, and not to the end of the stream."""
    rig = _rig()
    rig.dispatcher.answer("a", Acting(500, JSON, (b"{}",), acts=lambda: rig.clock.advance(5)))
    rig.dispatcher.answer("b", Acting(200, SSE, (ROLE, TOKEN, LAST), acts=lambda: rig.clock.advance(0.25)))
    decision_id = await begun(rig, STREAM)
    await relayed(rig, decision_id)
    assert settled(rig, decision_id, status=200).ttft_s == 0.5
    assert rig.engine.pool["b"].state.ttft.p50_ms == 500.0


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (event_stream(ROLE, ERROR, DONE), "stream_error"),
        (event_stream(ROLE, LAST, ERROR), "stream_error"),
        (event_stream(ROLE), "stream_truncated"),
        (event_stream(), "stream_truncated"),
        (event_stream(ROLE, cut=True), "upstream_cut"),
        (event_stream(ROLE + TOKEN[:-1]), "stream_truncated"),
        (None, "upstream_unreachable"),
        (failing(500), "upstream_5xx"),
        (failing(429), "rate_limited"),
        (CannedAnswer(503, body=(b"{",), cut=True), "upstream_cut"),
        (CannedAnswer(503, flags=("UF",)), "upstream_unreachable"),
        (CannedAnswer(200, JSON, (b"{",), cut=True), "upstream_cut"),
    ],
)
async def test_before_the_first_token_a_failure_leads_to_the_next_candidate(
    first: CannedAnswer | None, reason: str
) -> None:
    """The client sees nothing of it; what the backend had open is closed first."""
    rig = _rig()
    rig.dispatcher.answer("a", first)
    rig.dispatcher.answer("b", event_stream(ROLE, TOKEN, LAST, DONE))
    decision_id = await begun(rig, STREAM)
    told = await relayed(rig, decision_id)
    assert (told.status, told.body) == (200, ROLE + TOKEN + LAST + DONE)
    assert _moves(rig) == [("a", "b", reason)]
    assert first is None or first.closed
    end = settled(rig, decision_id)
    assert (end.outcome.failure, end.outcome.attempts, end.decision.backend) == (None, 2, "b")
    assert rig.engine.pool["a"].state.ttft.samples == 0
    assert rig.in_flight() == {"a": 0, "b": 0, "c": 0}


async def test_a_failed_answer_is_closed_before_the_next_backend_is_asked() -> None:
    """Its backend works on it no longer."""
    rig, closed = _rig(), list[bool]()
    first = event_stream(ROLE, ERROR)
    rig.dispatcher.answer("a", first)
    rig.dispatcher.answer("b", Acting(200, SSE, (TOKEN,), acts=lambda: closed.append(first.closed)))
    await relayed(rig, await begun(rig, STREAM))
    assert closed == [True]


@pytest.mark.parametrize("status", [200, 500])
async def test_a_backend_that_is_silent_for_too_long_is_given_up(status: int) -> None:
    """And how long it was silent counts as a time to the first token, so that it does not look fast."""
    rig = _rig(first_token_timeout_s=0.01)
    hanging = Acting(status, SSE, (ROLE,), hangs=True, acts=lambda: rig.clock.advance(60))
    rig.dispatcher.answer("a", hanging)
    rig.dispatcher.answer("b", event_stream(TOKEN, LAST))
    decision_id = await begun(rig, STREAM)
    told = await relayed(rig, decision_id)
    assert (told.body, hanging.closed) == (TOKEN + LAST, True)
    assert _moves(rig) == [("a", "b", "first_token_timeout")]
    ttft = rig.engine.pool["a"].state.ttft
    assert (ttft.samples, ttft.p50_ms) == (1, 60_000.0)


async def test_silence_after_the_first_token_is_envoys_to_bound() -> None:
    """The limit is one on the first token."""
    rig = _rig(first_token_timeout_s=0.01)
    rig.dispatcher.answer("a", Acting(200, SSE, (TOKEN,), hangs=True))
    parts = rig.engine.relay(await begun(rig, STREAM), ResponseHeaders(503, "", False))
    async with aclosing(parts):
        await anext(parts)
        await anext(parts)
        task = asyncio.ensure_future(anext(parts))
        done, _ = await asyncio.wait([task], timeout=0.05)
        task.cancel()
        await asyncio.wait([task])
    assert (done, _moves(rig)) == (set(), [])


# How a stream that has begun ends


@pytest.mark.parametrize(
    ("pieces", "cut", "body", "failure"),
    [
        ((TOKEN, LAST, DONE), False, TOKEN + LAST + DONE, None),
        ((TOKEN, LAST), False, TOKEN + LAST, None),
        ((TOKEN, DONE), False, TOKEN + DONE, None),
        ((TOKEN, LAST, USAGE, DONE[:-1]), False, TOKEN + LAST + USAGE + DONE[:-1], None),
        ((ROLE, LAST, DONE), False, ROLE + LAST + DONE, None),
        ((TOKEN,), False, TOKEN + BROKEN, "stream_truncated"),
        ((TOKEN, PARTIAL), False, TOKEN + BROKEN, "stream_truncated"),
        ((TOKEN,), True, TOKEN + BROKEN, "upstream_cut"),
        ((ROLE, TOKEN, PARTIAL), True, ROLE + TOKEN + BROKEN, "upstream_cut"),
        ((TOKEN + PARTIAL,), True, TOKEN + BROKEN, "upstream_cut"),
        ((TOKEN + TOKEN[:-1],), True, TOKEN + BROKEN, "upstream_cut"),
        ((TOKEN, TOKEN[:-1], b"\n"), True, TOKEN + TOKEN + BROKEN, "upstream_cut"),
        ((TOKEN, LAST), True, TOKEN + LAST, None),
        ((TOKEN, LAST, USAGE[:-1]), True, TOKEN + LAST + USAGE[:-1], None),
        ((TOKEN, ERROR), False, TOKEN + ERROR, "stream_error"),
        ((TOKEN, ERROR, DONE), False, TOKEN + ERROR + DONE, "stream_error"),
        ((TOKEN + ERROR,), False, TOKEN + ERROR, "stream_error"),
    ],
)
async def test_after_the_first_token_nothing_is_sent_twice(
    pieces: tuple[bytes, ...], cut: bool, body: bytes, failure: str | None
) -> None:
    """A stream that breaks ends with an error event, after whole events only; its own error event passes."""
    rig = _rig()
    rig.dispatcher.answer("a", event_stream(*pieces, cut=cut))
    decision_id = await begun(rig, STREAM)
    told = await relayed(rig, decision_id)
    assert (told.status, told.body) == (200, body)
    assert told.ends == [False] * (len(told.ends) - 1) + [True]
    assert _moves(rig) == []
    end = settled(rig, decision_id)
    assert (end.outcome.failure, end.outcome.attempts) == (failure, 1)


@pytest.mark.parametrize(
    ("path", "first", "told"),
    [
        ("/v1/chat/completions", TOKEN, BROKEN),
        ("/v1/completions", b'data: {"choices":[{"text":"Hi"}]}\n\n', BROKEN),
        ("/v1/responses", b'data: {"type":"response.output_text.delta","delta":"Hi"}\n\n', BROKEN_TYPED),
        (
            "/v1/messages",
            b'data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"Hi"}}\n\n',
            BROKEN_TYPED,
        ),
    ],
)
async def test_a_broken_stream_says_so_in_the_words_of_its_api(path: str, first: bytes, told: bytes) -> None:
    """Clients of each read one kind of error event."""
    rig = _rig()
    rig.dispatcher.answer("a", event_stream(first, cut=True))
    assert (await relayed(rig, await begun(rig, STREAM, head(path)))).body == first + told


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 10_000])
async def test_a_whole_stream_is_passed_on_byte_for_byte(size: int) -> None:
    """Whatever the pieces, the line ends, and what follows the last event."""
    comment = b": ping\n\nid: 1\ndata: {\ndata: }\n\n"
    crlf = (ROLE + TOKEN).replace(b"\n", b"\r\n")
    whole = comment + ROLE + TOKEN + crlf + comment + LAST + USAGE + DONE + b": the end"
    rig = _rig()
    rig.dispatcher.answer("a", event_stream(*(whole[at : at + size] for at in range(0, len(whole), size))))
    decision_id = await begun(rig, STREAM)
    told = await relayed(rig, decision_id)
    assert told.body == whole
    assert told.ends == [False] * (len(told.ends) - 1) + [True]
    outcome = settled(rig, decision_id).outcome
    assert outcome.usage is not None
    assert (outcome.usage.prompt_tokens, outcome.usage.completion_tokens) == (9, 1)


# Answers to a stream's request that are none


async def test_a_stream_without_a_content_type_is_one() -> None:
    """It is held until its first token, and does not get the type of the answer that it replaces."""
    rig = _rig()
    rig.dispatcher.answer("a", CannedAnswer(200, (), (ROLE,)))
    rig.dispatcher.answer("b", CannedAnswer(200, (), (ROLE, TOKEN, DONE)))
    told = await relayed(rig, await begun(rig, STREAM))
    assert told.body == ROLE + TOKEN + DONE
    assert _moves(rig) == [("a", "b", "stream_truncated")]
    assert "content-type" in told.heads[0].edits.remove


async def test_a_plain_answer_to_a_streams_request_passes_as_a_whole() -> None:
    """Its time to the first token is the time to all of it."""
    rig = _rig()
    answer = Acting(200, JSON, (b'{"usage":{"prompt_tokens":7,', b'"completion_tokens":2}}'))
    answer.acts = lambda: rig.clock.advance(1)
    rig.dispatcher.answer("a", answer)
    decision_id = await begun(rig, STREAM)
    told = await relayed(rig, decision_id)
    assert (told.body, told.ends) == (b'{"usage":{"prompt_tokens":7,"completion_tokens":2}}', [True])
    end = settled(rig, decision_id)
    assert (end.outcome.failure, end.ttft_s) == (None, 2.0)
    assert rig.engine.pool["a"].state.ttft.p50_ms == 2000.0


@pytest.mark.parametrize("status", [400, 404, 422, 499])
async def test_a_4xx_passes_as_it_is_and_is_no_failure(status: int) -> None:
    """Nobody else would answer otherwise."""
    rig = _rig()
    rig.dispatcher.answer("a", None)
    rig.dispatcher.answer("b", failing(status))
    decision_id = await begun(rig, STREAM)
    told = await relayed(rig, decision_id)
    assert (told.status, told.body, told.headers["content-type"]) == (status, b'{"error":"mine"}', "application/json")
    end = settled(rig, decision_id)
    assert (end.outcome.failure, rig.engine.pool["b"].state.ttft.samples) == (None, 0)
    assert rig.engine.pool["b"].answered_at == rig.clock.now_s


# When it is closed early


@pytest.mark.parametrize(("flags", "failure"), [(("DC",), "client_left"), ((), "router_fault")])
async def test_a_relay_that_is_closed_early_closes_the_backends_answer(flags: tuple[str, ...], failure: str) -> None:
    """As when the client leaves; the exchange is settled all the same."""
    rig = _rig()
    answer = event_stream(TOKEN, TOKEN, LAST)
    rig.dispatcher.answer("a", answer)
    decision_id = await begun(rig, STREAM)
    parts = rig.engine.relay(decision_id, ResponseHeaders(503, "", False))
    assert isinstance(await anext(parts), RelayHead)
    assert await anext(parts) == RelayBody(TOKEN, end=False)
    before = answer.closed
    await parts.aclose()
    assert (before, answer.closed) == (False, True)
    assert settled(rig, decision_id, status=200, flags=flags).outcome.failure == failure
    assert rig.in_flight()["a"] == 0


async def test_a_client_that_leaves_before_the_first_token_ends_the_attempt() -> None:
    """No other backend is asked, and the silence is no sign of a slow one."""
    rig, waits = _rig(), asyncio.Event()
    answer = Acting(200, SSE, (ROLE,), hangs=True, acts=waits.set)
    rig.dispatcher.answer("a", answer)
    decision_id = await begun(rig, STREAM)
    task = asyncio.create_task(relayed(rig, decision_id))
    await waits.wait()
    task.cancel()
    await asyncio.wait([task])
    assert (task.cancelled(), answer.closed, _moves(rig)) == (True, True, [])
    rig.engine.left(decision_id)
    rig.engine.settle(record(decision_id, 0, flags=("DC",)))
    assert rig.telemetry.ends[0].outcome.failure == "client_left"
    assert rig.engine.pool["a"].state.ttft.samples == 0


async def test_a_relay_that_is_never_begun_asks_nobody() -> None:
    """Closing it is enough."""
    rig = _rig()
    parts = rig.engine.relay(await begun(rig, STREAM), ResponseHeaders(503, "", False))
    await parts.aclose()
    assert rig.dispatcher.calls == []


# When nobody is left


@pytest.mark.parametrize(
    ("last", "status", "text", "failure"),
    [
        (failing(500), 500, b'"mine"', "upstream_5xx"),
        (failing(429, ("retry-after", "7")), 429, b'"mine"', None),
        (event_stream(ROLE, ERROR), 200, b"engine overloaded", "stream_error"),
        (None, 503, b'"code":"upstream_unavailable"', "upstream_unreachable"),
        (event_stream(ROLE, cut=True), 503, b'"code":"upstream_unavailable"', "upstream_cut"),
        (event_stream(ROLE), 503, b'"code":"upstream_unavailable"', "stream_truncated"),
        (
            CannedAnswer(503, body=(b"no healthy upstream",), flags=("UH",)),
            503,
            b'"upstream_unavailable"',
            "upstream_unreachable",
        ),
        (event_stream(ROLE, hangs=True), 504, b'"code":"upstream_timeout"', "first_token_timeout"),
    ],
)
async def test_when_all_fail_the_client_gets_what_the_last_one_said(
    last: CannedAnswer | None, status: int, text: bytes, failure: str | None
) -> None:
    """Or an error of the router where that was nothing: a 200 without an answer and Envoy's words are of no use."""
    rig = _rig(first_token_timeout_s=0.01, max_attempts=2)
    rig.dispatcher.answer("a", failing(502))
    rig.dispatcher.answer("b", last)
    decision_id = await begun(rig, STREAM)
    told = await relayed(rig, decision_id)
    assert (told.status, told.ends) == (status, [True])
    assert text in told.body
    assert told.headers.get("retry-after") == ("7" if status == 429 else "1" if status == 503 else None)
    end = settled(rig, decision_id, status=status)
    assert (end.outcome.failure, end.outcome.attempts, end.decision.backend) == (failure, 2, "b")
    assert rig.in_flight() == {"a": 0, "b": 0, "c": 0}


async def test_the_only_backend_says_itself_what_is_wrong() -> None:
    """One attempt, and no header that counts it."""
    rig = EngineRig(silent(trio(backend("a"))))
    rig.dispatcher.answer("a", failing(500))
    told = await relayed(rig, await begun(rig, STREAM))
    assert (told.status, told.body) == (500, b'{"error":"mine"}')
    assert "x-kronaxis-attempts" not in told.headers
