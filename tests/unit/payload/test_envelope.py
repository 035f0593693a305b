"""Reading the top level of a body, and where its values stand."""

import json

import pytest

from router_ext.model.rejection import Reason, Rejection
from router_ext.payload import envelope as module
from router_ext.payload.envelope import Envelope, read_envelope


def _values(raw: bytes) -> dict[str, bytes]:
    """The text of each value by its span."""
    read = read_envelope(raw)
    assert isinstance(read, Envelope), read
    return {name: raw[span.start : span.end] for name, span in read.spans.items()}


def _refusal(raw: bytes) -> Rejection:
    read = read_envelope(raw)
    assert isinstance(read, Rejection), read
    return read


def _nested(levels: int) -> bytes:
    """An object whose only field nests arrays so that there are ``levels`` levels in all."""
    return b'{"x":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        (b"{}", {}),
        (b" \t\r\n{ \n} ", {}),
        (b'{"a":1}', {"a": b"1"}),
        (b' { "a" : 1 , "b" :\t"x" } ', {"a": b"1", "b": b'"x"'}),
        (b'{"a":{"b":[1,{"a":2}]},"c":[]}', {"a": b'{"b":[1,{"a":2}]}', "c": b"[]"}),
        (b'{"a":"\\"},\\\\","b":null}', {"a": b'"\\"},\\\\"', "b": b"null"}),
        (b'{"":0,"\\u0061":true}', {"": b"0", "a": b"true"}),
        ('{"é":"ü","🌍":-0.5e-3}'.encode(), {"é": '"ü"'.encode(), "🌍": b"-0.5e-3"}),
    ],
)
def test_a_span_holds_the_text_of_the_value_alone(raw: bytes, values: dict[str, bytes]) -> None:
    """Without white space around it, for every kind of value and key."""
    assert _values(raw) == values


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b" ",
        b"{",
        b'{"a":1,}',
        b"{'a':1}",
        b'{"a":1}x',
        b'{"a":1}{"a":1}',
        b'{"a":01}',
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":-Infinity}',
        b'{"a":1e999}',
        b'{"a":"\x01"}',
        b'{"a":"\\x"}',
        b'{"a":"\xff"}',
        b'{"a":"\xed\xa0\x80"}',
        b'\xef\xbb\xbf{"a":1}',
        '{"a":1}'.encode("utf-16"),
        b'{"a":"\\ud800',
        b'{"a":"\\ud83',
    ],
)
def test_what_is_not_json_is_refused(raw: bytes) -> None:
    """RFC 8259 in UTF-8 without a byte order mark: nothing before, nothing after, no NaN and no infinity."""
    refusal = _refusal(raw)
    assert refusal.reason is Reason.INVALID_JSON
    assert refusal.status == 400
    assert refusal.message.startswith("The body is not valid JSON (byte ")


@pytest.mark.parametrize("raw", [b"[]", b"null", b'"x"', b"1", b"[{}]", b'"\\ud800"'])
def test_json_that_is_no_object_is_refused(raw: bytes) -> None:
    """Every inference API takes an object."""
    assert _refusal(raw).message == "The body must be a JSON object."


@pytest.mark.parametrize("levels", [2, 901, 1023, 1024])
def test_nesting_up_to_the_limit_is_read(levels: int) -> None:
    """1,024 levels, the outermost object being one of them."""
    assert _values(_nested(levels)) == {"x": _nested(levels)[5:-1]}


@pytest.mark.parametrize("levels", [1025, 1101, 5001, 30_001, 200_001])
def test_nesting_over_the_limit_is_refused_by_its_name(levels: int) -> None:
    """A client can tell a deep body from a broken one."""
    refusal = _refusal(_nested(levels))
    assert (refusal.status, refusal.message) == (400, "The body is nested deeper than 1024 levels.")


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b'{"model":"a","model":"a"}', "model"),
        (b'{"model":"a","model":"longer"}', "model"),
        (b'{"model":"a","mod\\u0065l":"b"}', "model"),
        (b'{"\\u006dodel":"a","x":1,"model":"b"}', "model"),
        (b'{"stream":true,"stream":false}', "stream"),
        (b'{"messages":[],"messages":[{}]}', "messages"),
        (b'{"user":1,"user":12}', "user"),
        (b'{"user":12,"user":1}', "user"),
        (b'{"model":"a","x":"\\ud800","model":"b"}', "model"),
        (b'{"model":"\\",\\"x\\":\\"","model":"\\""}', "model"),
        (b'{"model":1,"y":{"model":1},"model":2}', "model"),
    ],
)
def test_a_repeated_field_that_decides_is_refused(raw: bytes, name: str) -> None:
    """Compared after unescaping, whatever the values: gateway and engine might read different ones."""
    refusal = _refusal(raw)
    assert (refusal.reason, refusal.param) == (Reason.DUPLICATE_FIELD, name)
    assert refusal.status == 400


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        (b'{"x":1,"x":22,"model":"m"}', {"x": b"22", "model": b'"m"'}),
        (b'{"x":22,"x":1,"model":"m"}', {"x": b"1", "model": b'"m"'}),
        (b'{"x":[1,"],\\"model\\":"],"x":"{","model":"m"}', {"x": b'"{"', "model": b'"m"'}),
        (b'{"x":{"model":"n"},"model":"m","x":{}}', {"x": b"{}", "model": b'"m"'}),
        (b'{"x":"a","x":"a\\",\\"model\\":\\"n","model":"m"}', {"x": b'"a\\",\\"model\\":\\"n"', "model": b'"m"'}),
    ],
)
def test_any_other_repeated_field_is_read_as_its_last_value(raw: bytes, values: dict[str, bytes]) -> None:
    """Also where an earlier value has another length or imitates what follows."""
    assert _values(raw) == values


@pytest.mark.parametrize("raw", [b'{"x":{"model":1,"model":2}}', b'{"x":[{"stream":1,"stream":1}]}'])
def test_repeated_fields_below_the_top_level_are_left_to_the_engine(raw: bytes) -> None:
    """Nothing of the router reads them."""
    assert isinstance(read_envelope(raw), Envelope)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (b'"\\ud800"', "\ufffd"),
        (b'"a\\udFffb"', "a\ufffdb"),
        (b'"\\ud800\\ud83c\\udf0d"', "\ufffd🌍"),
        (b'"\\udf0d\\ud83c"', "\ufffd\ufffd"),
        (b'"\\\\ud800\\ud800"', "\\ud800\ufffd"),
        (b'"\\uD83C\\uDF0D\\ud83c"', "🌍\ufffd"),
    ],
)
def test_a_lone_surrogate_reads_as_the_replacement_character(text: bytes, read: str) -> None:
    """Engines accept its escape; pairs and escaped backslashes stay what they are, and so does every byte."""
    raw = b'{"x":' + text + b',"model":"m"}'
    envelope = read_envelope(raw)
    assert isinstance(envelope, Envelope)
    assert envelope.fields == {"x": read, "model": "m"}
    assert envelope.raw == raw
    assert _values(raw) == {"x": text, "model": b'"m"'}


def test_numbers_of_any_length_keep_their_text() -> None:
    """54 bits, 70 bits and more digits than a float has."""
    raw = b'{"seed":36028797018963969,"big":1180591620717411303424,"t":0.10000000000000000055}'
    assert _values(raw) == {
        "seed": b"36028797018963969",
        "big": b"1180591620717411303424",
        "t": b"0.10000000000000000055",
    }


def test_a_body_that_must_be_walked_token_by_token_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """``{``, ``"x"``, ``,``, ``"x"``, ``}`` are five tokens."""
    raw = b'{"x":1,"x":22}'
    monkeypatch.setattr(module, "MAX_SCANNED", 5)
    assert _values(raw) == {"x": b"22"}
    monkeypatch.setattr(module, "MAX_SCANNED", 4)
    assert _refusal(raw).message == "The body repeats fields or nests too deeply for its size."


@pytest.mark.parametrize(
    "raw",
    [
        b'{"model":"evil","model":"good"}',
        b'{"a":1,"model":"evil","b":2,"model":"good"}',
        b'{"model":"x","mod\\u0065l":"y"}',
        b'{"a":"","model":"evil","bb":"2","c":"3","d":"4","model":"good"}',
    ],
)
def test_a_repeated_field_is_seen_in_a_body_without_white_space(raw: bytes) -> None:
    """Adding lengths up gives another sum where a key stands twice."""
    refusal = read_envelope(raw)
    assert isinstance(refusal, Rejection)
    assert (refusal.reason, refusal.param) == (Reason.DUPLICATE_FIELD, "model")


def test_a_body_without_white_space_has_the_same_spans_as_one_with_it() -> None:
    """Non-ASCII and empty keys count by their bytes."""
    fields = {"": 1, "größe": [1, {"a": "}"}], "model": "m", "x": None}
    tight = read_envelope(json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode())
    loose = read_envelope(json.dumps(fields, ensure_ascii=False, indent=2).encode())
    assert isinstance(tight, Envelope)
    assert isinstance(loose, Envelope)
    for envelope in (tight, loose):
        texts = {name: json.loads(envelope.raw[span.start : span.end]) for name, span in envelope.spans.items()}
        assert texts == fields
