"""Any JSON object, however it is written down."""

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from router_ext.model.request import Caller
from router_ext.payload.envelope import UNIQUE_FIELDS, Envelope, read_envelope
from router_ext.payload.inference import BodyLimits, InferenceBody, read_inference
from tests.fakes.domain import CHAT

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    SCALARS | TEXTS | st.sampled_from(['","model":"x', "\\", '{"a":', "]}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS: st.SearchStrategy[dict[str, object]] = st.dictionaries(TEXTS, VALUES, max_size=5)
SPACES = st.sampled_from(["", " ", "\n", "\t \r\n"])


@st.composite
def written(
    draw: st.DrawFn, objects: st.SearchStrategy[dict[str, object]] = OBJECTS
) -> tuple[dict[str, object], bytes]:
    """An object and a way to write it: with or without escapes, with odd white space."""
    value = draw(objects)
    indent = draw(st.none() | st.integers(0, 2))
    separators = (draw(SPACES) + "," + draw(SPACES), draw(SPACES) + ":" + draw(SPACES))
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=indent, separators=separators)
    return value, (draw(SPACES) + text + draw(SPACES)).encode()


@given(written())
def test_each_span_parses_to_the_value_of_its_field(case: tuple[dict[str, object], bytes]) -> None:
    """The spans name every field once and hold the whole value."""
    value, raw = case
    envelope = read_envelope(raw)
    assert isinstance(envelope, Envelope)
    assert {name: json.loads(raw[span.start : span.end]) for name, span in envelope.spans.items()} == value


@given(written(), TEXTS.filter(lambda name: name not in UNIQUE_FIELDS), VALUES, VALUES)
def test_a_repeated_field_has_the_span_of_its_last_value(
    case: tuple[dict[str, object], bytes], name: str, first: object, last: object
) -> None:
    """Whatever the earlier value looks like, no other span moves."""
    value, raw = case
    inner = raw.strip()[1:-1].strip()
    key = json.dumps(name)
    head, tail = f"{{{key}:{json.dumps(first)}".encode(), f"{key}:{json.dumps(last)}}}".encode()
    doubled = b",".join([head, *([inner] if inner else []), tail])
    envelope = read_envelope(doubled)
    assert isinstance(envelope, Envelope)
    texts = {key: json.loads(doubled[span.start : span.end]) for key, span in envelope.spans.items()}
    assert texts == value | {name: last}


MODELS = st.from_regex(re.compile(r"[ -~]{1,20}"), fullmatch=True)


@given(written(st.fixed_dictionaries({"model": MODELS}, optional={"n": VALUES, "messages": VALUES})), MODELS)
def test_another_model_leaves_every_other_byte(case: tuple[dict[str, object], bytes], model: str) -> None:
    """Before and after the value the new body is the old one."""
    value, raw = case
    body = read_inference(CHAT, Caller(), raw, "", BodyLimits(1 << 20))
    assert isinstance(body, InferenceBody)
    sent = body.for_model(model)
    if value["model"] == model:
        assert sent is None
        return
    assert sent is not None
    span = body.envelope.spans["model"]
    end = len(raw) - span.end
    assert sent[: span.start] == raw[: span.start]
    assert sent[len(sent) - end :] == raw[span.end :]
    assert json.loads(sent[span.start : len(sent) - end]) == model


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_no_bytes_raise(raw: bytes) -> None:
    """Any input gives an envelope or a refusal."""
    read_envelope(raw)


ESCAPES = st.lists(st.sampled_from(["\\ud800", "\\udfff", "\\\\", "\\u0041", "\\n", "a", "\\\\ud800", "é"]), max_size=8)


@given(ESCAPES)
def test_surrogates_read_as_python_reads_them_but_for_the_lone_ones(pieces: list[str]) -> None:
    """The standard decoder, with each lone surrogate replaced, is the reference."""
    text = '{"x":"' + "".join(pieces) + '"}'
    envelope = read_envelope(text.encode())
    assert isinstance(envelope, Envelope)
    expected = json.loads(text)["x"]
    assert envelope.fields["x"] == re.sub("[\ud800-\udfff]", "\ufffd", expected)
