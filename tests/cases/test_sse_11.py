"""SSE-11: a content-length that is left on a changed response makes Envoy cut the new body."""

import pytest

from router_ext.stream.effects import HeadersReply
from router_ext.stream.events import RequestBody, RequestHeaders, ResponseHeaders
from tests.fakes.dispatcher import event_stream
from tests.fakes.domain import backend, head, router
from tests.fakes.rig import EngineRig, ExchangeRun
from tests.fakes.wire_http import Request, Response
from tests.fakes.wire_messages import Mode, ProcessingModes
from tests.fakes.wire_stand import unix_stand

STREAM = b'{"model":"m","stream":true}'
EVENTS = tuple(
    (b'data: {"choices":[{"index":0,"delta":{"content":"%d' % number).ljust(173, b".") + b'"}}]}\n\n'
    for number in range(9)
)
LAST = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop","pad":"'.ljust(174, b".") + b'"}]}\n\n'
TEN = (*EVENTS, LAST)


def test_the_length_of_the_first_answer_is_removed_with_its_headers() -> None:
    """In the very reply that makes the body ours, and no other length is set."""
    rig = EngineRig(router(backend("a"), backend("b")))
    rig.dispatcher.answer("b", event_stream(*TEN))
    run = ExchangeRun(rig)
    run.feed(RequestHeaders(head(), False), RequestBody(STREAM, True))
    effects = run.feed(ResponseHeaders(503, "text/plain", False))
    (reply,) = [effect for effect in effects if isinstance(effect, HeadersReply)]
    assert reply.takes_over
    assert "content-length" in reply.edits.remove
    assert "content-length" not in dict(reply.edits.set)


@pytest.mark.parametrize("mode", [Mode.NONE, Mode.STREAMED, Mode.BUFFERED, Mode.FULL_DUPLEX_STREAMED])
def test_the_client_receives_all_ten_events(mode: Mode) -> None:
    """1,800 bytes in the place of an answer that announced 180."""
    assert (len(TEN), sum(map(len, TEN))) == (10, 1800)
    announced = Response((b"x" * 180,), 503, sized=True)
    with unix_stand() as stand:
        stand.dispatcher.answer("gamma", event_stream(*TEN))
        envoy = stand.envoy(ProcessingModes(Mode.BUFFERED, mode))
        outcome = stand.run(envoy.exchange(Request((STREAM,)), announced))
    assert outcome.client is not None
    assert (outcome.client.status, outcome.client.body) == (200, b"".join(TEN))
    assert "content-length" not in outcome.client.headers
