"""Values that fit a JSON schema."""

from typing import Any

import pytest

from router_ext.demo.sim.schema_values import SchemaError, example


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 1),
        ({"type": "integer", "minimum": 5}, 5),
        ({"type": "number"}, 1.0),
        ({"type": "boolean"}, True),
        ({"type": "null"}, None),
        ({"type": ["integer", "null"]}, 1),
        ({"const": "x"}, "x"),
        ({"enum": ["a", "b"]}, "b"),
        ({"anyOf": [{"type": "boolean"}, {"type": "null"}]}, True),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, [1, 1]),
        ({"type": "object", "properties": {"a": {"type": "null"}, "b": {}}, "required": ["a"]}, {"a": None}),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}, 1),
        ({"properties": {"a": {"type": "integer"}}}, {"a": 1}),
    ],
)
def test_a_schema_gets_its_smallest_value(schema: dict[str, Any], value: object) -> None:
    """Required properties only, where a list of them is given."""
    assert example(schema, 1) == value


def test_a_string_keeps_to_its_lengths() -> None:
    """Cut to the longest, filled to the shortest."""
    assert len(example({"type": "string", "maxLength": 3}, 1)) == 3
    assert len(example({"type": "string", "minLength": 40}, 1)) == 40


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"$ref": "#/$defs/missing"},
        {"enum": 5},
        {"type": "object", "properties": {"a": {}}, "required": 5},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
    ],
)
def test_a_schema_that_no_value_fits_is_an_error(schema: dict[str, Any]) -> None:
    """Unknown types, dead references, endless ones, keywords of the wrong type."""
    with pytest.raises(SchemaError):
        example(schema, 1)
