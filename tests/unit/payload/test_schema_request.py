"""The schema that a request gives for its answer, and its tools."""

import base64
import json

import pytest

from router_ext.model.gate import BadSchema, SchemaText
from router_ext.payload.envelope import Envelope, read_envelope
from router_ext.payload.schema_request import MAX_SCHEMA_BYTES, requested_schema, requested_tools

HEADER = "x-kronaxis-response-schema"
SCHEMA = '{"type": "object", "required": ["a"]}'
NEITHER = BadSchema("neither JSON nor base64 of JSON")
LARGE = BadSchema("larger than 65536 bytes")
UNREADABLE = BadSchema("nested too deeply, or not Unicode")


def envelope(body: str = "{}") -> Envelope:
    """A body that was read."""
    read = read_envelope(body.encode())
    assert isinstance(read, Envelope)
    return read


def of_header(value: str) -> SchemaText | BadSchema | None:
    """The schema of a request with this header."""
    return requested_schema({HEADER: value}, envelope())


def of_format(response_format: str) -> SchemaText | BadSchema | None:
    """The schema of a body with this response format."""
    return requested_schema({}, envelope('{"n": 1, "response_format": ' + response_format + ', "model": "m"}'))


def of_body(schema: str) -> SchemaText | BadSchema | None:
    """The schema of a body with this one."""
    return of_format('{"type": "json_schema", "json_schema": {"name": "x", "schema": ' + schema + "}}")


def encoded(text: str) -> str:
    """The usual base64."""
    return base64.b64encode(text.encode()).decode()


def sized(size: int) -> str:
    """A schema of so many bytes."""
    return '{"title":"' + "x" * (size - 12) + '"}'


# The header


@pytest.mark.parametrize("value", [SCHEMA, f"  {SCHEMA}\t", encoded(SCHEMA), encoded(SCHEMA).rstrip("=")])
def test_the_header_holds_json_or_its_base64(value: str) -> None:
    """Padded or not, with white space around it; the text is that of the client."""
    assert of_header(value) == SchemaText(SCHEMA.encode())


@pytest.mark.parametrize("text", ['{"a":"?>~"}', '{"a":"???"}', '{"a":"~~~~"}'])
def test_both_alphabets_of_base64_are_read(text: str) -> None:
    """``+`` and ``/``, or ``-`` and ``_``."""
    url_safe = base64.urlsafe_b64encode(text.encode()).decode()
    assert encoded(text) != url_safe
    assert of_header(encoded(text)) == of_header(url_safe) == SchemaText(text.encode())


@pytest.mark.parametrize("text", ["true", "false", "{}"])
def test_json_wins_over_base64(text: str) -> None:
    """The booleans, which are schemas, are base64 of something too."""
    assert of_header(text) == of_header(encoded(text)) == SchemaText(text.encode())


def test_text_beyond_ascii_is_utf_8() -> None:
    """Envoy's header values come as one character a byte."""
    text = '{"title":"é 日"}'
    assert of_header(text.encode().decode("latin-1")) == of_header(encoded(text)) == SchemaText(text.encode())


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "{",
        "{'a':1}",
        '{"a":NaN}',
        f"{SCHEMA},{SCHEMA}",
        "abc",
        "e30!",
        "e 30",
        "e",
        "====",
        "=e30",
        encoded("{"),
        encoded("x"),
        base64.b64encode(b'{"a":"\xff"}').decode(),
        encoded(encoded(SCHEMA)),
        '{"title":"é"}',
        '{"title":"日"}',
        "\ud800",
    ],
)
def test_any_other_header_is_bad(value: str) -> None:
    """And says so without a word of it."""
    assert of_header(value) == NEITHER


def test_a_header_has_a_bounded_size() -> None:
    """64 KiB of JSON, however it is written."""
    at_limit, over = sized(MAX_SCHEMA_BYTES), sized(MAX_SCHEMA_BYTES + 1)
    assert len(at_limit) == 65_536
    assert of_header(at_limit) == of_header(encoded(at_limit)) == SchemaText(at_limit.encode())
    assert of_header(over) == of_header(encoded(over)) == of_header(encoded(sized(70_000))) == LARGE
    assert of_header("x" * 1_000_000) == LARGE


def test_the_header_wins_over_the_body() -> None:
    """Also when it is bad."""
    body = envelope('{"response_format":{"type":"json_schema","json_schema":{"schema":{}}}}')
    assert requested_schema({}, body) == SchemaText(b"{}")
    assert requested_schema({HEADER: SCHEMA}, body) == SchemaText(SCHEMA.encode())
    assert requested_schema({HEADER: "x"}, body) == NEITHER


# The body


@pytest.mark.parametrize("schema", [SCHEMA, "true", '{"b": 1.50, "a": 123456789012345678901234567890, "é": "\\u00e9"}'])
def test_the_body_holds_it_as_it_was_written(schema: str) -> None:
    """White space, numbers and escapes included."""
    assert of_body(schema) == SchemaText(schema.encode())


@pytest.mark.parametrize(
    "response_format",
    [
        "null",
        '"json_schema"',
        "[]",
        "{}",
        '{"type":"text"}',
        '{"type":"json_object"}',
        '{"type":"json_schema"}',
        '{"type":"json_schema","json_schema":null}',
        '{"type":"json_schema","json_schema":"x"}',
        '{"type":"json_schema","json_schema":{"name":"x"}}',
        '{"type":"json_schema","json_schema":{"schema":null}}',
        '{"type":"text","json_schema":{"schema":{}}}',
        '{"type":["json_schema"],"json_schema":{"schema":{}}}',
    ],
)
def test_any_other_response_format_gives_none(response_format: str) -> None:
    """Whether it is good is for the engine to say."""
    assert of_format(response_format) is None


def test_a_body_without_a_response_format_gives_none() -> None:
    """And without the header."""
    assert requested_schema({}, envelope()) is None
    assert requested_schema({}, envelope('{"json_schema":{"schema":{}}}')) is None


def test_a_schema_of_a_body_has_the_same_bound() -> None:
    """64 KiB."""
    assert of_body(sized(MAX_SCHEMA_BYTES)) == SchemaText(sized(MAX_SCHEMA_BYTES).encode())
    assert of_body(sized(MAX_SCHEMA_BYTES + 1)) == LARGE


def test_half_a_character_makes_a_schema_bad() -> None:
    """Which validators refuse as well."""
    assert of_body(r'{"pattern":"\ud800"}') == UNREADABLE
    assert of_body(r'{"pattern":"\ud83d\ude00"}') == SchemaText(rb'{"pattern":"\ud83d\ude00"}')


def test_a_deep_schema_never_raises() -> None:
    """800 levels are read; 1,000, which an envelope may have, may be too deep for this version of Python."""
    for levels, bad in ((800, []), (1000, [UNREADABLE])):
        schema = '{"not":' * levels + "{}" + "}" * levels
        assert of_body(schema) in (SchemaText(schema.encode()), *bad)


@pytest.mark.parametrize("bad", [NEITHER, LARGE, UNREADABLE])
def test_reasons_can_stand_in_a_header(bad: BadSchema) -> None:
    """Short and printable ASCII."""
    assert bad.reason.isascii()
    assert bad.reason.isprintable()
    assert len(bad.reason) < 64


# Tools


def test_tools_are_known_by_the_names_of_their_functions() -> None:
    """Those of today and the old ones."""
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    functions = [{"name": "g", "parameters": {"a": 1}}]
    body = envelope(json.dumps({"tools": tools, "functions": functions}))
    assert requested_tools(body) == {"f": {"type": "object"}, "g": {"a": 1}}


@pytest.mark.parametrize(
    "tools",
    [
        None,
        {},
        "x",
        [],
        [None, 5, [], {}],
        [{"function": None}, {"function": "f"}, {"function": {}}],
        [{"function": {"name": "f"}}, {"function": {"name": "f", "parameters": None}}],
        [{"function": {"name": 5, "parameters": {}}}, {"function": {"name": [], "parameters": {}}}],
        [{"type": "custom", "custom": {"name": "f"}}],
        [{"name": "f", "parameters": {}}],
    ],
)
def test_what_is_no_function_with_parameters_is_left_out(tools: object) -> None:
    """Whatever shape it has."""
    assert requested_tools(envelope(json.dumps({"tools": tools}))) == {}


def test_of_a_repeated_name_the_last_one_counts() -> None:
    """As a mapping has it."""
    tools = [{"function": {"name": "f", "parameters": {"a": at}}} for at in (1, 2)]
    assert requested_tools(envelope(json.dumps({"tools": tools}))) == {"f": {"a": 2}}
