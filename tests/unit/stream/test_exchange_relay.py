"""Answers that take the place of the upstream's: when they are asked for, and how they are sent."""

import pytest

from router_ext.model.headers import EGRESS_FLAGS
from router_ext.stream.effects import (
    Answer,
    Ask,
    AskRelay,
    DuplexBody,
    Forward,
    HeaderEdits,
    HeadersReply,
    ImmediateReply,
    Leave,
    RelayBody,
    RelayHead,
    Side,
    Wait,
)
from router_ext.stream.events import (
    BodyMode,
    Modes,
    RequestBody,
    RequestHeaders,
    ResponseBody,
    ResponseHeaders,
    is_failing,
)
from router_ext.stream.exchange import TOO_LARGE, Exchange
from tests.fakes.domain import head

RESPONSE = Side.RESPONSE
MARKS = HeaderEdits((("x-kronaxis-backend", "a"),))
FAILOVER = Forward(response_edits=MARKS, failover=True, wait_s=7.0)
FAILING = ResponseHeaders(503, "text/plain", False)
ENDED = ResponseHeaders(503, "", True)
HEAD = RelayHead(200, HeaderEdits((("x-kronaxis-backend", "b"),), ("content-length",)), {"backend": "b"})
SENT_HEAD = HeadersReply(
    RESPONSE,
    HeaderEdits(((":status", "200"), ("x-kronaxis-backend", "b")), ("content-length",)),
    metadata={"backend": "b"},
    takes_over=True,
)
PASSED = HeadersReply(RESPONSE, MARKS)


def _sent(plan: Forward = FAILOVER, modes: Modes | None = None) -> Exchange:
    """An exchange whose request is with its backend."""
    exchange = Exchange(lambda _: True, 100)
    effects = exchange.receive(RequestHeaders(head(), False, modes or Modes()))
    if not any(isinstance(effect, Ask) for effect in effects):
        effects = exchange.receive(RequestBody(b"{}", True))
    assert isinstance(effects[-1], Ask)
    exchange.plan(plan)
    return exchange


def _asked(event: ResponseHeaders = FAILING) -> Exchange:
    """An exchange that waits for another answer."""
    exchange = _sent()
    assert exchange.receive(event) == [Wait(7.0), AskRelay(event)]
    return exchange


@pytest.mark.parametrize(
    ("status", "failing"),
    [(0, False), (200, False), (428, False), (429, True), (430, False), (499, False), (500, True)],
)
def test_another_answer_is_asked_for_where_the_first_one_fails(status: int, failing: bool) -> None:
    """From 500 on and at 429; Envoy is asked to wait first, for as long as the engine says."""
    event = ResponseHeaders(status, "text/plain", False)
    effects = _sent().receive(event)
    assert effects == ([Wait(7.0), AskRelay(event)] if failing else [PASSED, Leave()])
    assert is_failing(status) is failing


@pytest.mark.parametrize("status", [200, 503])
def test_a_stand_in_is_always_replaced(status: int) -> None:
    """Whatever Envoy answered in the backend's place."""
    event = ResponseHeaders(status, "text/plain", False)
    assert _sent(Forward(relay=True, wait_s=300.0)).receive(event) == [Wait(300.0), AskRelay(event)]


def test_without_failover_a_failing_answer_passes() -> None:
    """As for a request that is no inference, or whose body nobody saw."""
    assert _sent(Forward(response_edits=MARKS)).receive(FAILING) == [PASSED, Leave()]


@pytest.mark.parametrize(
    ("modes", "can_relay"),
    [
        (Modes(), True),
        (Modes(BodyMode.BUFFERED_PARTIAL, BodyMode.NONE), True),
        (Modes(BodyMode.STREAMED, BodyMode.BUFFERED), True),
        (Modes(BodyMode.NONE, BodyMode.FULL_DUPLEX), True),
        (Modes(BodyMode.FULL_DUPLEX), False),
        (Modes(BodyMode.FULL_DUPLEX, BodyMode.FULL_DUPLEX), False),
        (Modes(BodyMode.STREAMED, body_before_headers=True), False),
        (Modes(body_before_headers=True), False),
    ],
    ids=str,
)
def test_envoy_lets_the_body_be_taken_over_in_some_modes_only(modes: Modes, can_relay: bool) -> None:
    """In the others the failing answer passes, whatever the engine allows."""
    assert modes.can_relay is can_relay
    effects = _sent(modes=modes).receive(FAILING)
    assert (effects[0] == Wait(7.0)) is can_relay
    assert (effects[0] == PASSED) is not can_relay


def test_a_relayed_answer_is_sent_as_it_comes() -> None:
    """Its head takes the body over; every piece follows on its own, and the stream is left after the last."""
    exchange = _asked()
    assert exchange.relayed(HEAD) == [SENT_HEAD]
    assert exchange.relayed(RelayBody(b"one", end=False)) == [DuplexBody(RESPONSE, b"one", end=False)]
    assert exchange.relayed(RelayBody(b"", end=False)) == [DuplexBody(RESPONSE, b"", end=False)]
    assert exchange.relayed(RelayBody(b"two", end=True)) == [DuplexBody(RESPONSE, b"two", end=True)]
    assert exchange.end_relay() == [Leave()]


def test_without_a_relayed_answer_the_upstreams_goes_on() -> None:
    """As if nobody had been asked."""
    exchange = _asked()
    assert exchange.end_relay() == [PASSED, Leave()]
    assert exchange.end_relay() == [Leave()]


def test_an_upstreams_answer_that_goes_on_in_full_duplex_is_not_left() -> None:
    """Its body still passes through here."""
    exchange = _sent(modes=Modes(BodyMode.BUFFERED, BodyMode.FULL_DUPLEX))
    exchange.receive(FAILING)
    assert exchange.end_relay() == [PASSED]
    assert exchange.receive(ResponseBody(b"busy", True)) == [DuplexBody(RESPONSE, b"busy", end=True), Leave()]


def test_in_the_place_of_headers_only_one_whole_answer_is_sent() -> None:
    """No body can follow them: the pieces are put together."""
    exchange = _asked(ENDED)
    assert exchange.relayed(HEAD) == []
    assert exchange.relayed(RelayBody(b"one", end=False)) == []
    whole = Answer(200, (("x-kronaxis-backend", "b"),), b"onetwo")
    assert exchange.relayed(RelayBody(b"two", end=True)) == [ImmediateReply(whole)]
    assert exchange.end_relay() == [Leave()]


@pytest.mark.parametrize(("size", "sent"), [(100, []), (101, [ImmediateReply(TOO_LARGE), Leave()])])
def test_a_whole_answer_over_the_limit_is_not_held(size: int, sent: list[object]) -> None:
    """The limit is that of a request's body, here 100 bytes."""
    exchange = _asked(ENDED)
    exchange.relayed(HEAD)
    assert exchange.relayed(RelayBody(b"x" * size, end=False)) == sent


def test_an_answer_without_its_end_does_not_take_the_place_of_headers_only() -> None:
    """Envoy goes on with what it has."""
    exchange = _asked(ENDED)
    exchange.relayed(HEAD)
    exchange.relayed(RelayBody(b"one", end=False))
    assert exchange.end_relay() == [Leave()]


def test_headers_only_that_stay_go_on_as_they_are() -> None:
    """Nothing follows them."""
    assert _asked(ENDED).end_relay() == [PASSED, Leave()]


def test_giving_up_before_the_first_part_lets_the_upstreams_answer_go_on() -> None:
    """A fault of ours must not take it away."""
    assert _asked().bail() == [PASSED, Leave()]


@pytest.mark.parametrize("event", [FAILING, ENDED])
def test_giving_up_in_the_middle_ends_the_stream(event: ResponseHeaders) -> None:
    """An answer that was begun cannot be whole any more, and must not seem so."""
    exchange = _asked(event)
    exchange.relayed(HEAD)
    assert exchange.bail() == [Leave()]


def test_envoys_flags_are_for_the_router_only() -> None:
    """The client never sees their header."""
    local = ResponseHeaders(503, "text/plain", False, flags=("UF",))
    edits = HeaderEdits(MARKS.set, (EGRESS_FLAGS,))
    assert _asked(local).end_relay() == [HeadersReply(RESPONSE, edits), Leave()]
