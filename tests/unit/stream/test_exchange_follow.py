"""Answers that the engine sees before the client does."""

import pytest

from router_ext.stream.effects import (
    Ask,
    AskFollow,
    BodyReply,
    Followed,
    Forward,
    HeaderEdits,
    HeadersReply,
    Leave,
    Side,
)
from router_ext.stream.events import BodyMode, Modes, RequestBody, RequestHeaders, ResponseBody, ResponseHeaders
from router_ext.stream.exchange import NOT_KEPT, Exchange
from tests.fakes.domain import head

RESPONSE = Side.RESPONSE
TOLD = HeaderEdits((("x-kronaxis-backend", "a"),))
KEPT = HeaderEdits((("x-kronaxis-session-id", "s"),))
BOTH = HeaderEdits((*TOLD.set, *KEPT.set))
FOLLOW = Forward(response_edits=TOLD, streaming=True, follow=True, follow_edits=KEPT)
OF_A_BODY = ("content-encoding", "etag", "last-modified", "digest", "content-digest", "repr-digest")


def _sent(response: BodyMode = BodyMode.STREAMED) -> Exchange:
    """An exchange whose request is with its backend."""
    exchange = Exchange(lambda _: True, 100)
    exchange.receive(RequestHeaders(head(), end=False, modes=Modes(response=response)))
    (ask,) = exchange.receive(RequestBody(b"{}", end=True))
    assert isinstance(ask, Ask)
    exchange.plan(FOLLOW)
    return exchange


def test_each_piece_of_an_event_stream_is_shown_before_it_goes_on() -> None:
    """The headers go at once, with what they say of the session."""
    exchange = _sent()
    assert exchange.receive(ResponseHeaders(200, "text/event-stream", end=False)) == [HeadersReply(RESPONSE, BOTH)]
    for piece, end in ((b"one", False), (b"two", True)):
        assert exchange.receive(ResponseBody(piece, end)) == [AskFollow(piece, end, events=True)]
        assert exchange.followed(Followed()) == [BodyReply(RESPONSE)]


def test_a_plain_answer_is_held_until_all_of_it_is_there() -> None:
    """So that another status can still be given."""
    exchange = _sent()
    reply = HeadersReply(RESPONSE, BOTH, holds=True)
    assert exchange.receive(ResponseHeaders(200, "application/json", end=False)) == [reply]
    assert exchange.receive(ResponseBody(b"{}", end=True)) == [AskFollow(b"{}", end=True, events=False)]
    assert exchange.followed(Followed(done=True)) == [BodyReply(RESPONSE), Leave()]


def test_a_piece_can_be_replaced() -> None:
    """Nothing else of the stream changes."""
    exchange = _sent()
    exchange.receive(ResponseHeaders(200, "text/event-stream", end=False))
    exchange.receive(ResponseBody(b"one", end=False))
    assert exchange.followed(Followed(b"other")) == [BodyReply(RESPONSE, body=b"other")]


def test_a_held_answer_can_become_an_error() -> None:
    """With its own status, type and length."""
    exchange = _sent()
    exchange.receive(ResponseHeaders(200, "application/json", end=False))
    exchange.receive(ResponseBody(b"{}", end=True))
    told = ((":status", "503"), ("content-type", "application/json"), ("retry-after", "2"), ("content-length", "5"))
    edits = HeaderEdits(told, (*OF_A_BODY, "x-kronaxis-session-id"))
    followed = Followed(b"error", 503, (("retry-after", "2"),), done=True, kept=False)
    assert exchange.followed(followed) == [BodyReply(RESPONSE, edits, b"error"), Leave()]


def test_a_held_answer_that_was_not_kept_says_nothing_of_the_session() -> None:
    """It goes on as it is otherwise."""
    exchange = _sent()
    exchange.receive(ResponseHeaders(200, "application/json", end=False))
    exchange.receive(ResponseBody(b"{}", end=True))
    edits = HeaderEdits((), ("x-kronaxis-session-id",))
    assert exchange.followed(Followed(done=True, kept=False)) == [BodyReply(RESPONSE, edits), Leave()]


@pytest.mark.parametrize("mode", [BodyMode.NONE, BodyMode.BUFFERED, BodyMode.BUFFERED_PARTIAL])
def test_an_event_stream_that_is_not_shown_piece_by_piece_is_held(mode: BodyMode) -> None:
    """Its end would go on unseen; a body that takes its place has a length of its own."""
    exchange = _sent(mode)
    reply = HeadersReply(RESPONSE, BOTH, holds=True)
    assert exchange.receive(ResponseHeaders(200, "text/event-stream", end=False)) == [reply]
    assert exchange.receive(ResponseBody(b"all", end=True)) == [AskFollow(b"all", end=True, events=True)]
    edits = HeaderEdits((("content-length", "5"),), OF_A_BODY)
    assert exchange.followed(Followed(b"error", done=True)) == [BodyReply(RESPONSE, edits, b"error"), Leave()]


def test_a_held_body_is_whole_also_where_trailers_follow() -> None:
    """Envoy marks no end of the body then."""
    exchange = _sent()
    exchange.receive(ResponseHeaders(200, "application/json", end=False))
    assert exchange.receive(ResponseBody(b"{}", end=False)) == [AskFollow(b"{}", end=True, events=False)]


@pytest.mark.parametrize(("status", "end"), [(199, False), (300, False), (404, False), (200, True)])
def test_only_a_good_answer_with_a_body_is_followed(status: int, end: bool) -> None:
    """Others say nothing of the session."""
    exchange = _sent()
    assert exchange.receive(ResponseHeaders(status, "application/json", end)) == [HeadersReply(RESPONSE, TOLD), Leave()]


def test_a_fault_never_lets_the_client_believe_that_a_turn_was_kept() -> None:
    """The piece becomes an error event, a held answer a 500."""
    stream, plain = _sent(), _sent()
    stream.receive(ResponseHeaders(200, "text/event-stream", end=False))
    stream.receive(ResponseBody(b"one", end=False))
    assert stream.bail() == [BodyReply(RESPONSE, body=b"data: " + NOT_KEPT + b"\n\ndata: [DONE]\n\n"), Leave()]
    plain.receive(ResponseHeaders(200, "application/json", end=False))
    plain.receive(ResponseBody(b"{}", end=True))
    reply, leave = plain.bail()
    assert isinstance(reply, BodyReply)
    assert (reply.body, reply.edits.set[0], leave) == (NOT_KEPT, (":status", "500"), Leave())
