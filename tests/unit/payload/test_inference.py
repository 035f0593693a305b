"""What routing reads from a body, and the body that is sent on."""

import gzip

import pytest

from router_ext.model.rejection import Reason, Rejection
from router_ext.model.request import Caller
from router_ext.payload.inference import BodyLimits, InferenceBody, read_inference
from tests.fakes.domain import CHAT

LIMITS = BodyLimits(10_000, content_type=True)


def _read(raw: bytes, encoding: str = "", limits: BodyLimits = LIMITS) -> InferenceBody:
    body = read_inference(CHAT, Caller(), raw, encoding, limits)
    assert isinstance(body, InferenceBody), body
    return body


def _refusal(raw: bytes, encoding: str = "", limits: BodyLimits = LIMITS) -> Rejection:
    refusal = read_inference(CHAT, Caller(), raw, encoding, limits)
    assert isinstance(refusal, Rejection)
    return refusal


@pytest.mark.parametrize(
    ("raw", "model", "stream"),
    [
        (b'{"model":"m-a","stream":true}', "m-a", True),
        (b'{"model":"m-a","stream":false}', "m-a", False),
        (b'{"model":"","stream":null}', "", False),
        (b'{"model":null,"stream":1}', "", True),
        (b"{}", "", False),
        (b'{"x":{"model":"n","stream":true}}', "", False),
    ],
)
def test_model_and_stream_come_from_the_top_level(raw: bytes, model: str, stream: bool) -> None:
    """A missing or null model is no name; what an engine reads as true asks for a stream."""
    request = _read(raw).request
    assert (request.model, request.stream, request.body_bytes) == (model, stream, len(raw))


@pytest.mark.parametrize("model", [b"1", b"[]", b"true", b'{"a":1}'])
def test_a_model_that_is_no_string_is_refused(model: bytes) -> None:
    """400 with the name of the field."""
    refusal = _refusal(b'{"model":' + model + b"}")
    assert (refusal.reason, refusal.param, refusal.status) == (Reason.INVALID_MODEL, "model", 400)


@pytest.mark.parametrize("name", ["m\\r\\nx: y", "m\\u0000", "m\\t", "\\u007f", "mé", "\\ud800", "\\u2028"])
def test_a_model_that_cannot_stand_in_a_header_is_refused(name: str) -> None:
    """Printable ASCII only."""
    assert _refusal(f'{{"model":"{name}"}}'.encode()).reason is Reason.INVALID_MODEL


def test_a_model_name_has_at_most_256_characters() -> None:
    """256 pass, 257 do not."""
    assert _read(b'{"model":"' + b"m" * 256 + b'"}').request.model == "m" * 256
    assert _refusal(b'{"model":"' + b"m" * 257 + b'"}').reason is Reason.INVALID_MODEL


def test_the_limit_counts_bytes_on_the_wire() -> None:
    """A body of exactly ``max_bytes`` is read; one byte more is 413."""
    raw = b'{"model":"m"}'
    assert _read(raw, limits=BodyLimits(13)).request.model == "m"
    refusal = _refusal(raw, limits=BodyLimits(12))
    assert (refusal.reason, refusal.status) == (Reason.BODY_TOO_LARGE, 413)


def test_the_limit_counts_inflated_bytes_too() -> None:
    """A small upload cannot become a large body."""
    raw = gzip.compress(b'{"model":"' + b" " * 10_000 + b'"}', mtime=0)
    assert len(raw) < 100
    assert _refusal(raw, "gzip").reason is Reason.BODY_TOO_LARGE


@pytest.mark.parametrize(
    ("raw", "sent"),
    [
        (b'{"model":"x","n":1}', b'{"model":"m-a","n":1}'),
        (b'{ "n" : 1.0 , "model" : null }', b'{ "n" : 1.0 , "model" : "m-a" }'),
        (b'{"n":1}', b'{"model":"m-a","n":1}'),
        (b" { } ", b' {"model":"m-a" } '),
        ('{"é":"🌍","model":"x"}'.encode(), '{"é":"🌍","model":"m-a"}'.encode()),
        (b'{"x":{"model":"x"},"model":"x"}', b'{"x":{"model":"x"},"model":"m-a"}'),
        (b'{"mod\\u0065l":"x","y":"\\ud800"}', b'{"mod\\u0065l":"m-a","y":"\\ud800"}'),
    ],
)
def test_another_model_name_changes_that_field_only(raw: bytes, sent: bytes) -> None:
    """In its place, or first in the object when it is missing."""
    assert _read(raw).for_model("m-a") == sent


def test_the_same_model_name_needs_no_new_body() -> None:
    """None means that the body goes as it came, also when it is compressed."""
    assert _read(b'{"mod\\u0065l":"m-a"}').for_model("m-a") is None
    assert _read(gzip.compress(b'{"model":"m-a"}', mtime=0), "gzip").for_model("m-a") is None


def test_a_compressed_body_is_changed_in_its_plain_form() -> None:
    """``compressed`` tells that its ``Content-Encoding`` is no longer true then."""
    body = _read(gzip.compress(b'{"model":"x"}', mtime=0), "gzip")
    assert body.compressed
    assert body.for_model("m-a") == b'{"model":"m-a"}'
    assert not _read(b'{"model":"x"}').compressed


IMAGES = {
    "chat": b'{"messages":[{"role":"user","content":[{"type":"text","text":"?"},{"type":"image_url"}]}]}',
    "messages": b'{"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]}',
    "responses turn": b'{"input":[{"role":"user","content":[{"type":"input_image"}]}]}',
    "responses item": b'{"input":[{"type":"input_image"}]}',
}

TEXTS = {
    "the word image": b'{"messages":[{"role":"user","content":"an image_url"}]}',
    "image in another field": b'{"messages":[{"role":"user","content":[{"type":"text","text":"image"}]}]}',
    "odd types": b'{"messages":[{"content":[{"type":["image"]},{"type":{"image":1}},{"type":null},"image",7]}]}',
    "no list": b'{"messages":"image"}',
    "no turns": b'{"messages":["image",null,3,[]]}',
    "prompt": b'{"prompt":"image"}',
}


@pytest.mark.parametrize("name", IMAGES)
def test_an_image_part_makes_a_vision_request(name: str) -> None:
    """In each API's own shape."""
    assert _read(IMAGES[name]).request.content_type == "vision"


@pytest.mark.parametrize("name", TEXTS)
def test_anything_else_is_a_text_request(name: str) -> None:
    """Whatever shape it has: the engine judges it, not the router."""
    assert _read(TEXTS[name]).request.content_type == "text"


def test_messages_are_looked_at_only_when_asked() -> None:
    """No rule and no backend cares: every request counts as text."""
    assert _read(IMAGES["chat"], limits=BodyLimits(10_000)).request.content_type == "text"
