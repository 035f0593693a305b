"""ENVOY-01: in the buffered mode a replaced body needs its own content-length."""

import pytest

from router_ext.extproc.codec import message_of
from router_ext.stream.effects import BodyReply
from router_ext.stream.events import RequestBody, RequestHeaders
from tests.fakes.domain import backend, head, router
from tests.fakes.rig import EngineRig, ExchangeRun


@pytest.mark.parametrize(
    ("model", "body", "sent", "length"),
    [
        ("a-longer-name", b'{"model":"m"}', b'{"model":"a-longer-name"}', "25"),
        ("m", b'{"model":"a-longer-name"}', b'{"model":"m"}', "13"),
        ("n", b'{"model":"m"}', b'{"model":"n"}', "13"),
        ("m", '{"user":"é🌍","model":"x1"}'.encode(), '{"user":"é🌍","model":"m"}'.encode(), "29"),
    ],
    ids=["longer", "shorter", "equal", "not ASCII"],
)
def test_the_length_of_a_new_body_is_set_in_bytes(model: str, body: bytes, sent: bytes, length: str) -> None:
    """Whether it is longer, shorter or of characters of several bytes."""
    run = ExchangeRun(EngineRig(router(backend(model=model))))
    _, reply = run.feed(
        RequestHeaders(head(content_length=str(len(body))), False),
        RequestBody(body, True),
    )
    assert isinstance(reply, BodyReply)
    common = message_of(reply).request_body.response
    values = {option.header.key: option.header.raw_value for option in common.header_mutation.set_headers}
    assert common.body_mutation.body == sent
    assert values["content-length"] == length.encode()
    assert "content-length" not in common.header_mutation.remove_headers


def test_a_body_that_stays_keeps_its_length() -> None:
    """Nothing is said about it."""
    run = ExchangeRun(EngineRig(router(backend(model="m"))))
    _, reply = run.feed(RequestHeaders(head(content_length="13"), False), RequestBody(b'{"model":"m"}', True))
    assert isinstance(reply, BodyReply)
    assert "content-length" not in dict(reply.edits.set)
    assert reply.body is None
