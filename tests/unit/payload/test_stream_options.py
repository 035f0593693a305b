"""Asking a stream for its token counts: one member is added, every other byte stays."""

import pytest

from router_ext.model.request import Caller
from router_ext.payload.inference import BodyLimits, InferenceBody, read_inference
from tests.fakes.domain import CHAT


def _read(raw: bytes) -> InferenceBody:
    body = read_inference(CHAT, Caller(), raw, "", BodyLimits(10_000))
    assert isinstance(body, InferenceBody), body
    return body


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        (b"null", b'{"include_usage":true}'),
        (b"{}", b'{"include_usage":true}'),
        (b" { } ", b' {"include_usage":true } '),
        (b'{"include_usage":false}', b'{"include_usage":true}'),
        (b'{"include_usage" : null }', b'{"include_usage" : true }'),
        (b'{"include_usage":0}', b'{"include_usage":true}'),
        (b'{"continuous_usage_stats":true}', b'{"include_usage":true,"continuous_usage_stats":true}'),
        (b'{ "x" : 1.0, "include_usage":false}', b'{ "x" : 1.0, "include_usage":true}'),
        (b'{"x":{"include_usage":true}}', b'{"include_usage":true,"x":{"include_usage":true}}'),
        (b'{"include_usage":true,"include_usage":false}', b'{"include_usage":true,"include_usage":true}'),
        (b'{"include\\u005fusage":false}', b'{"include\\u005fusage":true}'),
        (b'{"x":"\\ud800"}', b'{"include_usage":true,"x":"\\ud800"}'),
    ],
)
def test_the_options_keep_their_other_members(options: bytes, sent: bytes) -> None:
    """Byte for byte, whatever stands around them."""
    body = _read(b'{"model":"m-a", "stream_options":' + options + b', "stream":true,"n":1.0}')
    wanted = b'{"model":"m-a", "stream_options":' + sent + b', "stream":true,"n":1.0}'
    assert body.for_model("m-a", asks_usage=True) == wanted


def test_options_that_are_missing_come_first() -> None:
    """In the object, with a comma behind them."""
    sent = _read(b' { "stream" : true,"model":"m-a"}').for_model("m-a", asks_usage=True)
    assert sent == b' {"stream_options":{"include_usage":true}, "stream" : true,"model":"m-a"}'


@pytest.mark.parametrize(
    ("raw", "sent"),
    [
        (b'{"model":"x","stream":true}', b'{"stream_options":{"include_usage":true},"model":"m-a","stream":true}'),
        (b'{"stream":true}', b'{"model":"m-a","stream_options":{"include_usage":true},"stream":true}'),
    ],
)
def test_the_model_s_name_is_changed_as_well(raw: bytes, sent: bytes) -> None:
    """Also where both are missing."""
    assert _read(raw).for_model("m-a", asks_usage=True) == sent


@pytest.mark.parametrize(
    "options", [b'{"include_usage":true}', b'{"include_usage":1}', b'"x"', b"[]", b"true", b"0", b'{"n":1,"n":2}']
)
def test_a_body_that_asks_or_whose_options_are_no_object_goes_as_it_came(options: bytes) -> None:
    """It is for the backend to refuse what is none; with a field twice it is not clear what it would read."""
    body = _read(b'{"model":"m-a","stream":true,"stream_options":' + options + b"}")
    assert body.for_model("m-a", asks_usage=True) is None
    assert body.for_model("m-b", asks_usage=True) == body.for_model("m-b")
