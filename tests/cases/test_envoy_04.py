"""ENVOY-04: asking for a new route on the response side trips an assertion of Envoy."""

import pytest

from router_ext.extproc.codec import message_of
from router_ext.stream.effects import BodyReply, HeaderEdits, HeadersReply, ImmediateReply, Leave, Side
from router_ext.stream.events import BodyMode, Modes, RequestBody, RequestHeaders, ResponseBody, ResponseHeaders
from tests.fakes.domain import backend, head, router
from tests.fakes.rig import BODY, EngineRig, ExchangeRun

MODES = [
    Modes(),
    Modes(BodyMode.STREAMED, body_before_headers=True),
    Modes(BodyMode.FULL_DUPLEX, BodyMode.FULL_DUPLEX),
]
EVENT = b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'


@pytest.mark.parametrize("modes", MODES, ids=["buffered", "streamed", "full duplex"])
def test_only_the_request_side_chooses_the_route_anew(modes: Modes) -> None:
    """One request reply asks for it; no response reply does."""
    run = ExchangeRun(EngineRig(router(backend())))
    asked = run.feed(RequestHeaders(head(), False, modes), RequestBody(BODY, True))
    answered = run.feed(ResponseHeaders(200, "text/event-stream", False), ResponseBody(EVENT, False))
    texts = [
        [str(message_of(effect)) for effect in effects if not isinstance(effect, Leave | ImmediateReply)]  # type: ignore[arg-type]
        for effects in (asked, answered)
    ]
    assert sum("clear_route_cache: true" in text for text in texts[0]) == 1
    assert len(texts[1]) == 2
    assert not any("clear_route_cache" in text for text in texts[1])


@pytest.mark.parametrize("kind", [HeadersReply, BodyReply])
def test_the_codec_does_not_pass_such_a_wish_on(kind: type[HeadersReply] | type[BodyReply]) -> None:
    """Whatever the reply says."""
    edits = HeaderEdits((("x-kronaxis-backend", "a"),))
    assert "clear_route_cache" not in str(message_of(kind(Side.RESPONSE, edits=edits, reroute=True)))
    assert "clear_route_cache" in str(message_of(kind(Side.REQUEST, edits=edits, reroute=True)))
