"""Which replies each message of Envoy gets, in every body mode."""

import pytest

from router_ext.stream.effects import (
    NO_EDITS,
    Answer,
    Ask,
    BodyReply,
    DuplexBody,
    Effect,
    Forward,
    HeaderEdits,
    HeadersReply,
    ImmediateReply,
    Leave,
    Plan,
    ReportFirstToken,
    Side,
    TrailersReply,
)
from router_ext.stream.events import (
    BodyMode,
    Event,
    Modes,
    RequestBody,
    RequestHeaders,
    RequestTrailers,
    ResponseBody,
    ResponseHeaders,
    ResponseTrailers,
    Unknown,
)
from router_ext.stream.exchange import NO_HEADERS, Exchange
from tests.fakes.domain import head

REQUEST, RESPONSE = Side.REQUEST, Side.RESPONSE
HEAD = head()
EDITS = HeaderEdits((("x-kronaxis-cluster", "backend-a"),), ("accept-encoding",))
NO_LENGTH = HeaderEdits(EDITS.set, ("accept-encoding", "content-length"))
META = {"id": "t-1"}
MARKS = HeaderEdits((("x-kronaxis-backend", "a"),))
KEEP = Forward(EDITS, None, META, MARKS)
NEW = Forward(EDITS, b'{"n":"\xc3\xa9"}', META, MARKS)
OTHER = Forward(EDITS, None, META, watch=False)
REFUSED = Answer(400, (), b"no")
TOKEN = b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'
ROLE = b'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n'

BUFFERED = Modes()
PARTIAL = Modes(BodyMode.BUFFERED_PARTIAL)
STREAMED = Modes(BodyMode.STREAMED)
EARLY = Modes(BodyMode.STREAMED, body_before_headers=True)
NONE = Modes(BodyMode.NONE)
DUPLEX = Modes(BodyMode.FULL_DUPLEX, BodyMode.FULL_DUPLEX)

Run = list[tuple[Event, list[Effect]]]


def _start(modes: Modes, end: bool = False) -> RequestHeaders:
    return RequestHeaders(HEAD, end, modes)


def _released(edits: HeaderEdits = EDITS) -> HeadersReply:
    return HeadersReply(REQUEST, edits, reroute=True, metadata=META)


def _routed(body: bytes | None = None, *sizes: tuple[str, str]) -> BodyReply:
    return BodyReply(REQUEST, HeaderEdits((*EDITS.set, *sizes), EDITS.remove), body, reroute=True, metadata=META)


def _replay(run: Run, plan: Plan, wants_body: bool = True, limit: int = 100) -> None:
    """Feeds each event; an ``Ask`` in what comes back is answered by ``plan``, whose effects follow it."""
    exchange = Exchange(lambda _: wants_body, limit)
    for event, expected in run:
        effects = exchange.receive(event)
        if effects and isinstance(effects[-1], Ask):
            effects += exchange.plan(plan)
        assert effects == expected, event


ASK = Ask(HEAD, b"{}")
BLIND = Ask(HEAD, None)
EMPTY = Ask(HEAD, b"")
FINAL = Ask(HEAD, b"{}", can_relay=False, can_follow=False)
EMPTY_FINAL = Ask(HEAD, b"", can_relay=False, can_follow=False)
BODY = RequestBody(b"{}", True)

REQUESTS: dict[str, tuple[Run, Plan]] = {
    "buffered": ([(_start(BUFFERED), [HeadersReply(REQUEST)]), (BODY, [ASK, _routed()])], KEEP),
    "buffered, body replaced": (
        [(_start(BUFFERED), [HeadersReply(REQUEST)]), (BODY, [ASK, _routed(NEW.body, ("content-length", "10"))])],
        NEW,
    ),
    "buffered, last message repeated": (
        [
            (_start(BUFFERED), [HeadersReply(REQUEST)]),
            (BODY, [ASK, _routed()]),
            (BODY, [BodyReply(REQUEST)]),
            (BODY, [BodyReply(REQUEST)]),
        ],
        KEEP,
    ),
    "buffered with trailers": (
        [
            (_start(BUFFERED), [HeadersReply(REQUEST)]),
            (RequestBody(b"{}", False), [ASK, _routed()]),
            (RequestTrailers(), [TrailersReply(REQUEST)]),
        ],
        KEEP,
    ),
    "buffered, refused": (
        [(_start(BUFFERED), [HeadersReply(REQUEST)]), (BODY, [ASK, ImmediateReply(REFUSED), Leave()])],
        REFUSED,
    ),
    "no body follows": ([(_start(BUFFERED, end=True), [EMPTY, _released()])], KEEP),
    "empty last message": (
        [(_start(BUFFERED), [HeadersReply(REQUEST)]), (RequestBody(b"", True), [EMPTY, _routed()])],
        KEEP,
    ),
    "buffered partial, whole": ([(_start(PARTIAL), [HeadersReply(REQUEST)]), (BODY, [ASK, _routed()])], KEEP),
    "buffered partial, cut": (
        [
            (_start(PARTIAL), [HeadersReply(REQUEST)]),
            (RequestBody(b"{", False), [BLIND, _routed()]),
            (RequestBody(b"}", True), [BodyReply(REQUEST)]),
        ],
        KEEP,
    ),
    "no body mode": ([(_start(NONE), [BLIND, _released()])], KEEP),
    "streamed": ([(_start(STREAMED), [BLIND, _released()]), (BODY, [BodyReply(REQUEST)])], KEEP),
    "streamed before headers": (
        [
            (_start(EARLY), []),
            (RequestBody(b"{", False), []),
            (
                RequestBody(b"}", True),
                [FINAL, _released(NO_LENGTH), BodyReply(REQUEST), BodyReply(REQUEST)],
            ),
            (RequestBody(b"}", True), [BodyReply(REQUEST)]),
        ],
        KEEP,
    ),
    "streamed before headers, body replaced": (
        [
            (_start(EARLY), []),
            (RequestBody(b"{", False), []),
            (
                RequestBody(b"}", True),
                [FINAL, _released(NO_LENGTH), BodyReply(REQUEST, body=NEW.body), BodyReply(REQUEST, body=b"")],
            ),
        ],
        NEW,
    ),
    "full duplex": (
        [
            (_start(DUPLEX), []),
            (RequestBody(b"{", False), []),
            (RequestBody(b"}", True), [FINAL, _released(NO_LENGTH), DuplexBody(REQUEST, b"{}", end=True)]),
            (RequestBody(b"}", True), []),
        ],
        KEEP,
    ),
    "full duplex, body replaced": (
        [
            (_start(DUPLEX), []),
            (BODY, [FINAL, _released(NO_LENGTH), DuplexBody(REQUEST, b'{"n":"\xc3\xa9"}', end=True)]),
        ],
        NEW,
    ),
    "full duplex with trailers": (
        [
            (_start(DUPLEX), []),
            (RequestBody(b"{}", False), []),
            (
                RequestTrailers(),
                [FINAL, _released(NO_LENGTH), DuplexBody(REQUEST, b"{}", end=False), TrailersReply(REQUEST)],
            ),
        ],
        KEEP,
    ),
    "full duplex, refused": ([(_start(DUPLEX), []), (BODY, [FINAL, ImmediateReply(REFUSED), Leave()])], REFUSED),
    "full duplex, no body follows": ([(_start(DUPLEX, end=True), [EMPTY_FINAL, _released()])], KEEP),
    "modes not told": (
        [(RequestHeaders(HEAD, False), [HeadersReply(REQUEST)]), (BODY, [ASK, _routed()])],
        KEEP,
    ),
    "body before headers": ([(BODY, [ImmediateReply(NO_HEADERS), Leave()])], KEEP),
    "unknown message": ([(Unknown(), [Leave()])], KEEP),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_each_request_message_gets_exactly_its_replies(name: str) -> None:
    """One reply a message in the buffered and streamed modes; in full-duplex every byte is sent on once."""
    run, plan = REQUESTS[name]
    _replay(run, plan)


@pytest.mark.parametrize("modes", [BUFFERED, PARTIAL, STREAMED, EARLY, NONE])
def test_a_request_that_is_no_inference_is_left_after_its_headers(modes: Modes) -> None:
    """Its body and its response are of no interest."""
    asked = EMPTY_FINAL if modes is EARLY else EMPTY
    _replay([(_start(modes), [asked, _released(), Leave()])], OTHER, wants_body=False)


def test_full_duplex_cannot_be_left() -> None:
    """Every byte of a request that is no inference is sent on as it comes, the repeated last message excepted."""
    run: Run = [
        (_start(DUPLEX), [EMPTY_FINAL, _released()]),
        (RequestBody(b"a", False), [DuplexBody(REQUEST, b"a", end=False)]),
        (RequestBody(b"b", True), [DuplexBody(REQUEST, b"b", end=True)]),
        (RequestBody(b"b", True), []),
        (ResponseHeaders(404, "text/plain", False), [HeadersReply(RESPONSE)]),
        (ResponseBody(b"c", True), [DuplexBody(RESPONSE, b"c", end=True), Leave()]),
    ]
    _replay(run, OTHER, wants_body=False)


@pytest.mark.parametrize("modes", [EARLY, DUPLEX])
def test_a_body_over_the_limit_is_asked_about_at_once(modes: Modes) -> None:
    """At the limit the machine goes on collecting; one byte more shows the engine that it is too large."""
    exchange = Exchange(lambda _: True, 4)
    assert exchange.receive(_start(modes)) == []
    assert exchange.receive(RequestBody(b"1234", False)) == []
    assert exchange.receive(RequestBody(b"5", False)) == [Ask(HEAD, b"12345", can_relay=False, can_follow=False)]
    assert exchange.plan(REFUSED) == [ImmediateReply(REFUSED), Leave()]


MARKED = HeadersReply(RESPONSE, MARKS)
SSE = ResponseHeaders(200, "text/event-stream; charset=utf-8", False)

RESPONSES: dict[str, Run] = {
    "not streamed": [(ResponseHeaders(200, "application/json", False), [MARKED, Leave()])],
    "without a body": [(ResponseHeaders(200, "text/event-stream", True), [MARKED, Leave()])],
    "error": [(ResponseHeaders(500, "text/event-stream", False), [MARKED, Leave()])],
    "no content type": [(ResponseHeaders(200, "", False), [MARKED, Leave()])],
    "stream": [
        (SSE, [MARKED]),
        (ResponseBody(ROLE, False), [BodyReply(RESPONSE)]),
        (ResponseBody(TOKEN[:20], False), [BodyReply(RESPONSE)]),
        (ResponseBody(TOKEN[20:], False), [ReportFirstToken(), BodyReply(RESPONSE), Leave()]),
    ],
    "capital content type": [
        (ResponseHeaders(200, "Text/Event-Stream", False), [MARKED]),
        (ResponseBody(TOKEN, False), [ReportFirstToken(), BodyReply(RESPONSE), Leave()]),
    ],
    "stream without a token": [(SSE, [MARKED]), (ResponseBody(ROLE, True), [BodyReply(RESPONSE), Leave()])],
    "stream with trailers": [
        (SSE, [MARKED]),
        (ResponseBody(ROLE, False), [BodyReply(RESPONSE)]),
        (ResponseTrailers(), [TrailersReply(RESPONSE), Leave()]),
    ],
}


@pytest.mark.parametrize("name", RESPONSES)
def test_each_response_message_gets_exactly_its_replies(name: str) -> None:
    """The stream is left as soon as nothing more can be seen: at the first token at the latest."""
    _replay([*REQUESTS["buffered"][0], *RESPONSES[name]], KEEP)


def test_a_stream_without_a_content_type_is_read_when_the_client_asked_for_one() -> None:
    """Some servers leave it out."""
    run: Run = [
        *REQUESTS["buffered"][0],
        (ResponseHeaders(200, "", False), [MARKED]),
        (ResponseBody(TOKEN, False), [ReportFirstToken(), BodyReply(RESPONSE), Leave()]),
    ]
    _replay(run, Forward(EDITS, None, META, MARKS, streaming=True))


@pytest.mark.parametrize("mode", [BodyMode.NONE, BodyMode.BUFFERED, BodyMode.BUFFERED_PARTIAL])
def test_a_response_whose_pieces_do_not_come_as_they_flow_is_left(mode: BodyMode) -> None:
    """A time measured there would not be that of the first token."""
    modes = Modes(BodyMode.BUFFERED, mode)
    _replay([(_start(modes), [HeadersReply(REQUEST)]), (BODY, [ASK, _routed()]), (SSE, [MARKED, Leave()])], KEEP)


def test_a_full_duplex_response_is_sent_on_to_its_end() -> None:
    """The first token is reported once; leaving early would cut the body."""
    run: Run = [
        *REQUESTS["full duplex"][0],
        (SSE, [MARKED]),
        (ResponseBody(TOKEN, False), [ReportFirstToken(), DuplexBody(RESPONSE, TOKEN, end=False)]),
        (ResponseBody(TOKEN, False), [DuplexBody(RESPONSE, TOKEN, end=False)]),
        (ResponseBody(b"", True), [DuplexBody(RESPONSE, b"", end=True), Leave()]),
    ]
    _replay(run, KEEP)


def test_a_response_without_a_request_passes() -> None:
    """Envoy may be told not to send request headers."""
    _replay([(ResponseHeaders(200, "text/plain", False), [HeadersReply(RESPONSE, NO_EDITS), Leave()])], KEEP)


def test_giving_up_releases_what_waits_for_the_plan() -> None:
    """Without edits and without a new route: Envoy goes on as if the router were away."""
    exchange = Exchange(lambda _: True, 100)
    exchange.receive(_start(BUFFERED))
    exchange.receive(BODY)
    assert exchange.bail() == [BodyReply(REQUEST)]
    assert exchange.bail() == []
