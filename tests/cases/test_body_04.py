"""BODY-04: requests without a body, or with an empty one, must not hang."""

import orjson
import pytest

from router_ext.stream.effects import HeadersReply, ImmediateReply, Leave
from router_ext.stream.events import RequestBody, RequestHeaders
from tests.fakes.domain import backend, head, router
from tests.fakes.rig import EngineRig, ExchangeRun


def _run() -> ExchangeRun:
    return ExchangeRun(EngineRig(router(backend())))


@pytest.mark.parametrize(("method", "path"), [("HEAD", "/health"), ("DELETE", "/v1/sessions/s-1"), ("POST", "/x")])
@pytest.mark.parametrize("end", [True, False])
def test_other_requests_pass_after_their_headers(method: str, path: str, end: bool) -> None:
    """Whether or not a body follows."""
    reply, leave = _run().feed(RequestHeaders(head(path, method), end))
    assert isinstance(reply, HeadersReply)
    assert leave == Leave()


def test_the_model_list_is_answered_at_once() -> None:
    """By the router itself."""
    answer, _ = _run().feed(RequestHeaders(head("/v1/models", "GET"), True))
    assert isinstance(answer, ImmediateReply)
    assert [card["id"] for card in orjson.loads(answer.answer.body)["data"]] == ["m-a"]


def test_an_empty_chat_request_is_refused() -> None:
    """With content-length 0 the headers end it; over HTTP/2 an empty last frame does."""
    short = _run().feed(RequestHeaders(head(content_length="0"), True))
    framed = _run().feed(RequestHeaders(head(), False), RequestBody(b"", True))
    for effects in (short, framed[1:]):
        answer = effects[0]
        assert isinstance(answer, ImmediateReply)
        assert answer.answer.status == 400
        assert orjson.loads(answer.answer.body)["error"]["code"] == "invalid_json"
