"""Failing answers over the wire: another backend's takes their place, in every mode in which Envoy allows it."""

from dataclasses import replace
from typing import Final

import pytest

from router_ext.config.sections import Defaults
from router_ext.ports import Call
from tests.fakes.dispatcher import CannedAnswer, event_stream
from tests.fakes.envoy_client import Act
from tests.fakes.wire_access_log import Entry, entry_of, send_access_log
from tests.fakes.wire_http import HeaderList, Outcome, Request, Response
from tests.fakes.wire_messages import REQUEST, RESPONSE, WAIT, ProcessingModes, Reply, body_message, headers_message
from tests.fakes.wire_stand import ALONE, ALPHA, CONFIG, GAMMA, Stand, eventually
from tests.fakes.wire_stream import ProcessStream
from tests.wire.modes import ALL_MODES, BODY_MODES, BUFFERED, PARTIAL, PRODUCT, can_relay, shows_body

PLAIN: Final = b'{"model":"m","messages":[]}'
STREAM: Final = b'{"model":"m","messages":[],"stream":true}'
BUSY: Final = Response(
    (b'{"error":', b'{"message":"busy"}}'), 503, (("content-type", "text/plain"), ("retry-after", "3")), sized=True
)

ROLE: Final = b'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n'
TOKEN: Final = b'data: {"choices":[{"delta":{"content":"Hel"}}]}\n\n'
LAST: Final = b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n'
DONE: Final = b"data: [DONE]\n\n"

RELAYING: Final = tuple(modes for modes in ALL_MODES if can_relay(modes) and shows_body(modes))
PASSING: Final = tuple(modes for modes in ALL_MODES if modes not in RELAYING)
GUARDED: Final = replace(CONFIG, defaults=Defaults(("alpha", "gamma"), first_token_timeout_s=0.05))
"""Streams that are silent for 50 ms are given up."""

REQUEST_PART: Final = ["request_headers", "request_body"]
GONE: Final = ("downstream_connection_termination",)


def ask(stand: Stand, body: bytes, response: Response = BUSY, modes: ProcessingModes = PRODUCT) -> Outcome:
    """One exchange, settled by its access log entry."""

    async def play() -> Outcome:
        outcome = await stand.envoy(modes).exchange(Request((body[:9], body[9:])), response)
        await send_access_log(stand.channel, [entry_of(outcome)])
        return outcome

    return stand.run(play())


def told(outcome: Outcome) -> tuple[int, bytes]:
    """Status and body as the client gets them."""
    assert outcome.client is not None
    return outcome.client.status, outcome.client.body


def lines(outcome: Outcome) -> dict[str, str]:
    """The client's headers, each of which stands once."""
    assert outcome.client is not None
    pairs = outcome.client.headers.pairs
    assert len({name for name, _ in pairs}) == len(pairs)
    return dict(pairs)


def test_the_buffered_modes_can_relay() -> None:
    """Two ways to show a request whole, and five for its answer."""
    assert {(modes.request, modes.response) for modes in RELAYING} == {
        (request, response) for request in (BUFFERED, PARTIAL) for response in BODY_MODES
    }


@pytest.mark.parametrize("modes", RELAYING, ids=str)
def test_a_failing_answer_is_replaced_by_the_next_backends(stand: Stand, modes: ProcessingModes) -> None:
    """Status, headers and body are the second one's; nothing of the first is left, its length neither."""
    stand.dispatcher.answer("gamma", CannedAnswer(201, (("content-type", "a/b"), ("x-engine", "g")), (b'{"a":', b"1}")))
    outcome = ask(stand, PLAIN, modes=modes)
    assert told(outcome) == (201, b'{"a":1}')
    assert lines(outcome) == {
        ":status": "201",
        "content-type": "a/b",
        "x-engine": "g",
        "x-kronaxis-backend": "gamma",
        "x-kronaxis-rule": "default",
        "x-kronaxis-attempts": "2",
    }
    assert outcome.waits == [125.0]
    assert stand.kept.faults == []


@pytest.mark.parametrize("modes", RELAYING, ids=str)
def test_a_failing_answer_is_replaced_by_a_stream(stand: Stand, modes: ProcessingModes) -> None:
    """It begins at its first token, and every event comes through once."""
    stand.dispatcher.answer("gamma", event_stream(ROLE, TOKEN[:9], TOKEN[9:], TOKEN, LAST + DONE))
    outcome = ask(stand, STREAM, modes=modes)
    assert told(outcome) == (200, ROLE + TOKEN + TOKEN + LAST + DONE)
    assert lines(outcome)["content-type"] == "text/event-stream"
    assert outcome.answered[:4] == [*REQUEST_PART, "response_headers", "response_body"]
    assert outcome.waits == [305.0]
    assert stand.kept.faults == []


@pytest.mark.parametrize("modes", PASSING, ids=str)
@pytest.mark.parametrize("body", [PLAIN, STREAM])
def test_where_no_other_answer_can_be_sent_the_failing_one_passes(
    stand: Stand, modes: ProcessingModes, body: bytes
) -> None:
    """Envoy is not asked to wait, and no other backend is asked."""
    outcome = ask(stand, body, modes=modes)
    assert told(outcome) == (503, BUSY.body)
    assert (lines(outcome)["x-kronaxis-backend"], lines(outcome)["retry-after"]) == ("alpha", "3")
    assert (outcome.waits, stand.dispatcher.calls, stand.kept.faults) == ([], [], [])


def test_the_second_backend_gets_the_request_as_envoy_would_have_sent_it(stand: Stand) -> None:
    """Its path, its key and its model name; nothing of the product and no coding of the answer is asked for."""
    stand.dispatcher.answer("gamma", CannedAnswer())
    request = Request(
        (PLAIN,),
        target="/v1/chat/completions?trace=1",
        headers=(("accept-encoding", "gzip"), ("x-kronaxis-service", "shop"), ("x-own", "1")),
    )
    outcome = stand.run(stand.envoy().exchange(request, BUSY))
    (call,) = stand.dispatcher.calls
    assert call == Call(
        backend=GAMMA,
        target="/v1beta/openai/chat/completions?trace=1",
        headers=(("x-own", "1"), ("authorization", "Bearer gamma-key")),
        body=b'{"model":"gemini-pro","messages":[]}',
        request_id=f"{outcome.decision_id}.2",
    )


def test_the_exchange_is_accounted_to_the_backend_that_answered(stand: Stand) -> None:
    """One decision a backend under one id, which Envoy learns of too; the pause that was asked for is granted."""
    stand.dispatcher.answer("gamma", CannedAnswer())
    outcome = ask(stand, PLAIN)
    assert [(item.id, item.backend, item.attempt) for item in stand.kept.decisions] == [
        (outcome.decision_id, "alpha", 1),
        (outcome.decision_id, "gamma", 2),
    ]
    assert outcome.metadata["router_ext"] == {
        "id": outcome.decision_id,
        "rule": "default",
        "backend": "gamma",
        "service": "",
        "attempts": "2",
    }
    (end,) = stand.kept.ends
    assert (end.decision.backend, end.outcome.attempts, end.outcome.failure) == ("gamma", 2, None)
    assert stand.kept.moves == [("alpha", "gamma", "upstream_5xx")]
    assert stand.kept.pauses == [("alpha", 3.0)]
    assert stand.in_flight == 0


@pytest.mark.parametrize("modes", RELAYING, ids=str)
@pytest.mark.parametrize("body", [PLAIN, STREAM])
def test_a_failing_answer_of_headers_only_becomes_one_whole_answer(
    stand: Stand, modes: ProcessingModes, body: bytes
) -> None:
    """No body can follow such headers: Envoy's own 503 for a cluster that it does not know may be one."""
    stand.dispatcher.answer("gamma", event_stream(ROLE, TOKEN, LAST, DONE))
    outcome = ask(stand, body, Response(status=503, headers=()), modes)
    assert told(outcome) == (200, ROLE + TOKEN + LAST + DONE)
    assert outcome.client is not None
    assert outcome.client.immediate
    assert (lines(outcome)["content-type"], lines(outcome)["x-kronaxis-attempts"]) == ("text/event-stream", "2")
    assert stand.kept.ends[0].decision.backend == "gamma"


@pytest.mark.parametrize("modes", RELAYING, ids=str)
@pytest.mark.parametrize("response", [BUSY, Response(status=503, headers=())], ids=["body", "headers only"])
def test_with_nobody_left_the_answer_passes_unchanged(stand: Stand, modes: ProcessingModes, response: Response) -> None:
    """Headers and body, without a count of attempts."""
    with stand.configured(ALONE):
        outcome = ask(stand, PLAIN, response, modes)
    assert told(outcome) == (503, response.body)
    told_by_alpha = {"x-kronaxis-backend": "alpha", "x-kronaxis-rule": "default"}
    length = {"content-length"} if modes.response.name in ("STREAMED", "FULL_DUPLEX_STREAMED") else set()
    sent = {name: value for name, value in response.header_list().pairs if name not in length}
    assert lines(outcome) == {**sent, **told_by_alpha}
    assert stand.dispatcher.calls == []


@pytest.mark.parametrize(
    ("status", "asked"), [(200, False), (404, False), (428, False), (429, True), (499, False), (500, True), (504, True)]
)
def test_an_answer_fails_from_500_on_and_at_429(stand: Stand, status: int, asked: bool) -> None:
    """Any other passes at once."""
    stand.dispatcher.answer("gamma", CannedAnswer(body=(b"second",)))
    outcome = ask(stand, PLAIN, Response((b"first",), status))
    assert told(outcome) == ((200, b"second") if asked else (status, b"first"))
    assert bool(outcome.waits) is asked


def test_when_both_fail_the_client_gets_what_the_second_said(stand: Stand) -> None:
    """With its own headers, and both attempts counted."""
    stand.dispatcher.answer("gamma", CannedAnswer(429, (("retry-after", "7"),), (b"later",)))
    outcome = ask(stand, PLAIN)
    assert told(outcome) == (429, b"later")
    assert (lines(outcome)["retry-after"], lines(outcome)["x-kronaxis-attempts"]) == ("7", "2")


@pytest.mark.parametrize("response", [BUSY, Response(status=503, headers=())], ids=["body", "headers only"])
def test_a_header_that_the_second_backend_sends_twice_comes_twice(stand: Stand, response: Response) -> None:
    """Two cookies are two lines."""
    stand.dispatcher.answer("gamma", CannedAnswer(200, (("set-cookie", "a=1"), ("set-cookie", "b=2"))))
    outcome = ask(stand, PLAIN, response)
    assert outcome.client is not None
    cookies = [value for name, value in outcome.client.headers.pairs if name == "set-cookie"]
    assert cookies == ["a=1", "b=2"]


def test_a_stream_that_breaks_ends_with_an_error_event(stand: Stand) -> None:
    """After the last whole event; the token was the client's already, so nobody else is asked."""
    stand.dispatcher.answer("gamma", event_stream(ROLE, TOKEN, LAST[:20], cut=True))
    outcome = ask(stand, STREAM)
    status, body = told(outcome)
    assert (status, body[: len(ROLE + TOKEN)]) == (200, ROLE + TOKEN)
    error, done, end = body[len(ROLE + TOKEN) :].split(b"\n\n")
    assert error.startswith(b'data: {"error":{')
    assert (done, end) == (b"data: [DONE]", b"")
    assert stand.kept.ends[0].outcome.failure == "upstream_cut"


# Streams that are guarded against silence


@pytest.mark.parametrize("modes", RELAYING, ids=str)
def test_a_guarded_stream_comes_from_its_backend_by_way_of_the_router(stand: Stand, modes: ProcessingModes) -> None:
    """Envoy's own answer is a stand-in that nobody sees, and one attempt is not worth a header."""
    stand.dispatcher.answer("alpha", event_stream(ROLE, TOKEN, LAST, DONE))
    with stand.configured(GUARDED):
        outcome = ask(stand, STREAM, modes=modes)
    assert outcome.upstream is not None
    assert outcome.upstream.cluster == "router-ext-relay"
    assert told(outcome) == (200, ROLE + TOKEN + LAST + DONE)
    assert lines(outcome) == {
        ":status": "200",
        "content-type": "text/event-stream",
        "x-kronaxis-backend": "alpha",
        "x-kronaxis-rule": "default",
    }
    assert outcome.waits == [305.0]
    (call,) = stand.dispatcher.calls
    assert (call.backend, call.body) == (ALPHA, b'{"model":"served-model","messages":[],"stream":true}')
    (end,) = stand.kept.ends
    assert (end.decision.backend, end.outcome.attempts, end.outcome.failure) == ("alpha", 1, None)


def test_a_guarded_stream_that_is_silent_goes_to_the_next_backend(stand: Stand) -> None:
    """What the first one has sent is no token, and its connection is closed."""
    silent = event_stream(ROLE, hangs=True)
    stand.dispatcher.answer("alpha", silent)
    stand.dispatcher.answer("gamma", event_stream(ROLE, TOKEN, LAST, DONE))
    with stand.configured(GUARDED):
        outcome = ask(stand, STREAM)
    assert told(outcome) == (200, ROLE + TOKEN + LAST + DONE)
    assert (lines(outcome)["x-kronaxis-backend"], lines(outcome)["x-kronaxis-attempts"]) == ("gamma", "2")
    assert stand.kept.moves == [("alpha", "gamma", "first_token_timeout")]
    assert silent.closed


def test_a_guarded_stream_that_nobody_answers_is_a_504(stand: Stand) -> None:
    """In the form of any other error."""
    stand.dispatcher.answer("alpha", event_stream(hangs=True))
    stand.dispatcher.answer("gamma", event_stream(hangs=True))
    with stand.configured(GUARDED):
        outcome = ask(stand, STREAM)
    status, body = told(outcome)
    assert (status, lines(outcome)["content-type"]) == (504, "application/json")
    assert b'"code":"upstream_timeout"' in body


@pytest.mark.parametrize("modes", PASSING, ids=str)
def test_where_no_other_answer_can_be_sent_a_stream_is_not_guarded(stand: Stand, modes: ProcessingModes) -> None:
    """It goes to its backend by Envoy alone."""
    with stand.configured(GUARDED):
        outcome = ask(stand, STREAM, Response((TOKEN, DONE), headers=(("content-type", "text/event-stream"),)), modes)
    assert outcome.upstream is not None
    assert outcome.upstream.cluster == "backend-alpha"
    assert told(outcome) == (200, TOKEN + DONE)


def test_a_plain_request_is_not_guarded(stand: Stand) -> None:
    """It has no first token."""
    with stand.configured(GUARDED):
        outcome = ask(stand, PLAIN, Response((b"{}",)))
    assert outcome.upstream is not None
    assert outcome.upstream.cluster == "backend-alpha"
    assert (told(outcome), outcome.waits) == ((200, b"{}"), [])


# Clients that leave


@pytest.mark.parametrize("response_mode", BODY_MODES, ids=lambda mode: mode.name)
def test_a_client_that_leaves_in_the_middle_closes_the_backends_answer(stand: Stand, response_mode: object) -> None:
    """The backend stops generating, and the exchange ends as the client's own doing."""
    modes = next(modes for modes in RELAYING if (modes.request, modes.response) == (BUFFERED, response_mode))
    hanging = event_stream(ROLE, TOKEN, hangs=True)
    stand.dispatcher.answer("gamma", hanging)

    async def leave() -> Outcome:
        act = Act(gone_after_reply=len(REQUEST_PART) + 2)
        outcome = await stand.envoy(modes).exchange(Request((STREAM,)), BUSY, act)
        await stand.quiet()
        await send_access_log(stand.channel, [entry_of(outcome)])
        return outcome

    assert stand.run(leave()).answered == [*REQUEST_PART, "response_headers", "response_body"]
    assert hanging.closed
    check_that_the_client_left(stand)


async def read_up_to_the_wait(stand: Stand, wire: ProcessStream) -> Reply:
    """A stream whose processor has just asked for time to find another answer; the reply with its decision."""
    await wire.send(headers_message(REQUEST, Request((STREAM,)).header_list(), False, PRODUCT))
    await wire.receive()
    await wire.send(body_message(REQUEST, STREAM, True))
    decided = await wire.receive()
    assert decided is not None
    await wire.send(headers_message(RESPONSE, HeaderList(((":status", "503"),)), False, None))
    wait = await wire.receive()
    assert wait is not None
    assert wait.kind == WAIT
    return decided


def test_a_client_that_leaves_before_the_answer_closes_it_too(stand: Stand) -> None:
    """Nothing of it was seen yet."""
    hanging = event_stream(hangs=True)
    stand.dispatcher.answer("gamma", hanging)

    async def leave() -> None:
        wire = ProcessStream(stand.channel)
        decided = await read_up_to_the_wait(stand, wire)
        await eventually(lambda: bool(stand.dispatcher.calls))
        assert not hanging.closed
        wire.leave()
        await stand.quiet()
        await send_access_log(stand.channel, [Entry(decided.metadata(), status=None, flags=GONE)])

    stand.run(leave())
    assert hanging.closed
    check_that_the_client_left(stand)


def check_that_the_client_left(stand: Stand) -> None:
    """It says nothing about the backend that was about to answer."""
    (end,) = stand.kept.ends
    assert (end.decision.backend, end.outcome.failure, end.outcome.attempts) == ("gamma", "client_left", 2)
    assert (stand.in_flight, stand.kept.faults) == (0, [])
