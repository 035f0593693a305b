"""SSE-16: what streams is known by status, content type and first bytes, not by the request's flag."""

import pytest

from router_ext.stream.effects import BodyReply, Effect, HeadersReply, Leave, Wait
from router_ext.stream.events import RequestBody, RequestHeaders, ResponseBody, ResponseHeaders
from tests.fakes.domain import backend, head, router
from tests.fakes.rig import EngineRig, ExchangeRun

STREAM, PLAIN = b'{"model":"m-a","stream":true}', b'{"model":"m-a","stream":false}'
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
ERROR = b'{"error":{"message":"data: too long","code":400}}'


def _answer(body: bytes, status: int, content_type: str, data: bytes) -> tuple[list[Effect], float | None]:
    """What is left of the exchange after the answer's headers and first chunk, and the time to its first token."""
    rig = EngineRig(router(backend()))
    run = ExchangeRun(rig)
    run.feed(RequestHeaders(head(), False), RequestBody(body, True))
    rig.clock.advance(0.5)
    first = run.feed(ResponseHeaders(status, content_type, False))
    effects: list[Effect] = [effect for effect in first if not isinstance(effect, HeadersReply | Wait)]
    if not effects:
        effects = run.feed(ResponseBody(data, False))
    exchange = rig.engine.exchanges.get(run.decision_id)
    assert exchange is not None
    return effects, exchange.attempt.streamed_ttft_s


@pytest.mark.parametrize(
    ("body", "content_type"),
    [(STREAM, ""), (STREAM, "text/event-stream"), (PLAIN, "text/event-stream; charset=utf-8")],
)
def test_an_event_stream_is_read_as_one(body: bytes, content_type: str) -> None:
    """Without a content type when the client asked for a stream; else by its content type alone."""
    effects, ttft_s = _answer(body, 200, content_type, EVENT)
    assert [type(effect) for effect in effects] == [BodyReply, Leave]
    assert ttft_s == 0.5


@pytest.mark.parametrize(
    ("body", "status", "content_type"),
    [
        (STREAM, 400, "application/json"),
        (STREAM, 400, ""),
        (STREAM, 200, "application/json"),
        (STREAM, 500, "text/event-stream"),
        (PLAIN, 200, ""),
        (PLAIN, 200, "text/plain"),
    ],
)
def test_anything_else_passes_unread(body: bytes, status: int, content_type: str) -> None:
    """The stream is left with the headers."""
    assert _answer(body, status, content_type, ERROR) == ([Leave()], None)


def test_json_without_a_content_type_has_no_first_token() -> None:
    """Its first bytes are no event."""
    effects, ttft_s = _answer(STREAM, 200, "", ERROR)
    assert [type(effect) for effect in effects] == [BodyReply]
    assert ttft_s is None
