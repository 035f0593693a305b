"""Verdicts on texts, in this process: only schemas and texts that are judged quickly."""

import json
from pathlib import Path
from typing import Any

import pytest

from router_ext.model.gate import SchemaVerdict
from router_ext.schemas.verdict import Law, compile_unchecked

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "address": {"type": "object", "required": ["city"]}},
    "required": ["name"],
    "additionalProperties": False,
}


def verdict(schema: Any, text: str) -> SchemaVerdict:
    """The verdict of a fresh judge."""
    return Law().verdict(json.dumps(schema).encode(), text.encode())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"name": "Ada"}', SchemaVerdict.VALID),
        (' {"name": "Ada", "address": {"city": "London"}}\n', SchemaVerdict.VALID),
        ("{}", SchemaVerdict.INVALID),
        ('{"name": 7}', SchemaVerdict.INVALID),
        ('{"name": "Ada", "address": {}}', SchemaVerdict.INVALID),
        ('{"name": "Ada", "more": 1}', SchemaVerdict.INVALID),
        ('[{"name": "Ada"}]', SchemaVerdict.INVALID),
        ('{"name": "Ada"', SchemaVerdict.NOT_JSON),
        ('{"name": "Ada", "name": "Ada"}', SchemaVerdict.NOT_JSON),
        ('{"name": NaN}', SchemaVerdict.NOT_JSON),
        ('```json\n{"name": "Ada"}\n```', SchemaVerdict.NOT_JSON),
    ],
)
def test_a_text_fits_or_does_not_or_is_no_json(text: str, expected: SchemaVerdict) -> None:
    """Missing, wrong, nested and additional members."""
    assert verdict(PERSON, text) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", SchemaVerdict.VALID),
        ("1", SchemaVerdict.VALID),
        ("", SchemaVerdict.NOT_JSON),
        ("[1, Infinity]", SchemaVerdict.NOT_JSON),
        ("[1] and more", SchemaVerdict.NOT_JSON),
    ],
)
def test_without_a_schema_a_text_must_only_be_json(text: str, expected: SchemaVerdict) -> None:
    """Of any kind."""
    assert Law().verdict(None, text.encode()) is expected


@pytest.mark.parametrize(("schema", "expected"), [(True, SchemaVerdict.VALID), (False, SchemaVerdict.INVALID)])
def test_boolean_schemas_take_everything_or_nothing(schema: bool, expected: SchemaVerdict) -> None:
    """As the specification has them."""
    assert verdict(schema, "{}") is expected


@pytest.mark.parametrize(
    ("draft", "schema", "fits", "fails"),
    [
        ("http://json-schema.org/draft-04/schema#", {"maximum": 3, "exclusiveMaximum": True}, "2", "3"),
        ("http://json-schema.org/draft-06/schema#", {"const": 1}, "1", "2"),
        ("http://json-schema.org/draft-07/schema#", {"if": {"minimum": 5}, "then": {"multipleOf": 5}}, "10", "11"),
        ("http://json-schema.org/draft-07/schema#", {"items": [{"type": "string"}]}, '["a"]', "[1]"),
        ("https://json-schema.org/draft/2019-09/schema", {"dependentRequired": {"a": ["b"]}}, "{}", '{"a":1}'),
        ("https://json-schema.org/draft/2020-12/schema", {"prefixItems": [{"type": "string"}]}, '["a"]', "[1]"),
    ],
)
def test_the_draft_is_that_of_the_schema(draft: str, schema: dict[str, Any], fits: str, fails: str) -> None:
    """Each keyword here is unknown to, or otherwise in, another draft."""
    assert verdict({"$schema": draft, **schema}, fits) is SchemaVerdict.VALID
    assert verdict({"$schema": draft, **schema}, fails) is SchemaVerdict.INVALID


def test_without_a_draft_it_is_2020_12() -> None:
    """Where ``prefixItems`` counts and an array of ``items`` is an error."""
    assert verdict({"prefixItems": [{"type": "string"}]}, "[1]") is SchemaVerdict.INVALID
    assert verdict({"items": [{"type": "string"}]}, "[1]") is SchemaVerdict.BAD_SCHEMA
    assert verdict({"$schema": "http://json-schema.org/draft-04/schema#", "const": 1}, "2") is SchemaVerdict.VALID


@pytest.mark.parametrize(
    "draft", ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]
)
def test_formats_are_annotations(draft: str) -> None:
    """In every draft, also for strings that do not have the format."""
    assert verdict({"$schema": draft, "format": "email"}, '"nobody"') is SchemaVerdict.VALID


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "strin"},
        {"required": "name"},
        {"pattern": "("},
        {"properties": []},
        {"$ref": "#/$defs/missing"},
        {"$ref": "http://127.0.0.1:1/x"},
        {"pattern": "(a{1000}){1000}"},
        [],
    ],
)
@pytest.mark.parametrize("text", ["{}", "no JSON"])
def test_a_schema_that_cannot_be_used_is_bad(schema: object, text: str) -> None:
    """Whatever the text is."""
    assert verdict(schema, text) is SchemaVerdict.BAD_SCHEMA


@pytest.mark.parametrize("nothing", ["http://127.0.0.1:1/x", "file:///etc/passwd", "json-schema:///other"])
def test_the_library_itself_fetches_nothing(nothing: str) -> None:
    """Also where no check came before."""
    assert compile_unchecked(json.dumps({"$ref": nothing})) is None


def test_a_file_that_is_a_schema_is_not_read(tmp_path: Path) -> None:
    """A reference to it is as bad as one to a file that does not exist."""
    (tmp_path / "any.json").write_text("true")
    assert compile_unchecked(json.dumps({"$ref": (tmp_path / "any.json").as_uri()})) is None
    assert verdict({"$ref": (tmp_path / "any.json").as_uri()}, "{}") is SchemaVerdict.BAD_SCHEMA


@pytest.mark.parametrize("text", ["a" * 40 + "!", "a" * 40])
def test_a_pattern_is_matched_in_linear_time(text: str) -> None:
    """An engine that backtracks needs 2 to the power of 40 steps for the first one."""
    expected = SchemaVerdict.VALID if text.endswith("a") else SchemaVerdict.INVALID
    assert verdict({"pattern": "^(a+)+$"}, json.dumps(text)) is expected


def test_look_around_works() -> None:
    """By the other engine, for all patterns of the schema."""
    schema = {"pattern": "^(?!admin)[a-z]+$"}
    assert verdict(schema, '"ada"') is SchemaVerdict.VALID
    assert verdict(schema, '"admin"') is SchemaVerdict.INVALID


@pytest.mark.parametrize("wrap", ["plain", "anyOf", "oneOf", "properties"])
def test_a_pattern_that_takes_too_many_steps_is_a_timeout(wrap: str) -> None:
    """It is neither a match nor a failure to match; also in a branch."""
    bad = {"pattern": "^(?:(?=a)a+)+$"}
    text = "a" * 60 + "!"
    schema, value = {
        "plain": (bad, text),
        "anyOf": ({"anyOf": [bad, {"type": "null"}]}, text),
        "oneOf": ({"oneOf": [{"allOf": [bad]}, {"type": "null"}]}, text),
        "properties": ({"properties": {"a": bad}}, {"a": text}),
    }[wrap]
    assert verdict(schema, json.dumps(value)) is SchemaVerdict.TIMEOUT


def test_a_mismatch_beside_look_around_is_no_timeout() -> None:
    """Only steps without end are."""
    assert verdict({"pattern": "^(?=a)", "type": "integer"}, '"abc"') is SchemaVerdict.INVALID


def test_numbers_keep_their_value() -> None:
    """Large integers are compared exactly, 1.0 is an integer, and 0.01 divides 19.99."""
    assert verdict({"const": 12345678901234567890123}, "12345678901234567890123") is SchemaVerdict.VALID
    assert verdict({"const": 12345678901234567890123}, "12345678901234567890124") is SchemaVerdict.INVALID
    assert verdict({"type": "integer"}, "1.0") is SchemaVerdict.VALID
    assert verdict({"multipleOf": 0.01}, "19.99") is SchemaVerdict.VALID


def test_a_judge_stays_right_with_many_schemas() -> None:
    """More than it keeps compiled, each twice."""
    law = Law()
    for _ in range(2):
        for number in range(70):
            schema = json.dumps({"const": number}).encode()
            assert law.verdict(schema, str(number).encode()) is SchemaVerdict.VALID
            assert law.verdict(schema, b"-1") is SchemaVerdict.INVALID
