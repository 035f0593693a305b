"""Envoy's messages for what failover needs, read by a codec of another make."""

import pytest
from envoy.service.ext_proc.v3 import external_processor_pb2 as pb

from router_ext.extproc.codec import event_of, message_of
from router_ext.stream.effects import BodyReply, DuplexBody, HeaderEdits, HeadersReply, Reply, Side, TrailersReply, Wait
from router_ext.stream.events import ResponseHeaders
from tests.fakes import wire_messages as wire
from tests.fakes.wire_http import HeaderList, Pairs


def sent(reply: Reply) -> wire.Reply:
    """A reply as Envoy reads it."""
    return wire.Reply.parse(message_of(reply).SerializeToString())


@pytest.mark.parametrize(("asked_s", "wait_s"), [(120.0, 120.0), (0.25, 0.25), (0.001, 0.001), (0.0004, 0.001)])
def test_a_wait_is_in_milliseconds_and_never_less_than_one(asked_s: float, wait_s: float) -> None:
    """Envoy ignores less; nothing else goes with it."""
    reply = sent(Wait(asked_s))
    assert (reply.kind, reply.wait_s) == (wire.WAIT, wait_s)


def test_taking_over_goes_with_the_edits_and_the_metadata() -> None:
    """One message: the new status, the length that is removed, the decision, and the mode."""
    edits = HeaderEdits(((":status", "200"),), ("content-length",))
    reply = sent(HeadersReply(Side.RESPONSE, edits, metadata={"attempts": "2"}, takes_over=True))
    headers = HeaderList(((":status", "503"), ("content-length", "4")))
    wire.apply_edits(headers, reply.common.header_mutation)
    assert (reply.kind, reply.takes_over) == ("response_headers", True)
    assert headers.pairs == [(":status", "200")]
    assert reply.metadata() == {"router_ext": {"attempts": "2"}}


def test_a_name_that_is_set_twice_has_two_values() -> None:
    """Both of them new: what the first answer said under it is replaced."""
    reply = sent(HeadersReply(Side.RESPONSE, HeaderEdits((("set-cookie", "a=1"), ("x-a", "1"), ("set-cookie", "b=2")))))
    headers = HeaderList((("set-cookie", "old=0"), ("x-a", "0")))
    wire.apply_edits(headers, reply.common.header_mutation)
    assert headers.pairs == [("set-cookie", "a=1"), ("x-a", "1"), ("set-cookie", "b=2")]


@pytest.mark.parametrize("side", Side)
def test_no_other_reply_changes_a_mode_or_a_time(side: Side) -> None:
    """In any phase."""
    for reply in (HeadersReply(side), BodyReply(side), DuplexBody(side, b"x", end=True), TrailersReply(side)):
        assert not sent(reply).takes_over
        assert sent(reply).wait_s == 0


@pytest.mark.parametrize(
    ("headers", "event"),
    [
        ((), ResponseHeaders(503, "", False)),
        ((("retry-after", "7"), ("content-type", "a/b")), ResponseHeaders(503, "a/b", False, "7")),
        ((("x-kronaxis-egress-flags", "UF,URX"),), ResponseHeaders(503, "", False, flags=("UF", "URX"))),
        ((("x-kronaxis-egress-flags", "-"),), ResponseHeaders(503, "", False)),
    ],
)
def test_response_headers_tell_the_pause_and_envoys_flags(headers: Pairs, event: ResponseHeaders) -> None:
    """A hyphen stands for no flags."""
    message = wire.headers_message(wire.RESPONSE, HeaderList(((":status", "503"), *headers)), False, None)
    assert event_of(pb.ProcessingRequest.FromString(bytes(message))) == event
