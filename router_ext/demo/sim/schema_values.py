"""The smallest value that fits a JSON schema, for structured answers and tool arguments."""

from collections.abc import Mapping
from typing import Any

from router_ext.demo.sim.answers import mix, word

MAX_DEPTH = 32


class SchemaError(ValueError):
    """The schema is malformed, names an unknown type, has a reference that leads nowhere, or nests without an end."""


def example(schema: Mapping[str, Any], bits: int) -> Any:
    """A value that fits ``schema``; ``bits`` picks the words.

    Knows types, enum, const, anyOf, local references, lower bounds and lengths. Raises SchemaError.
    """
    try:
        return _value(schema, schema, bits, 0)
    except (TypeError, AttributeError) as error:  # a keyword of the schema has a value of another type than its own
        raise SchemaError(f"Malformed schema: {error}") from error


def _value(schema: Any, root: Mapping[str, Any], bits: int, depth: int) -> Any:
    if not isinstance(schema, Mapping):  # true stands for any value
        return None
    if depth > MAX_DEPTH:
        raise SchemaError("the schema nests too deep")
    if "$ref" in schema:
        return _value(_resolve(schema["$ref"], root), root, bits, depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][bits % len(schema["enum"])]
    for union in ("anyOf", "oneOf", "allOf"):
        if schema.get(union):
            return _value(schema[union][0], root, bits, depth + 1)
    return _typed(schema, root, bits, depth)


def _typed(schema: Mapping[str, Any], root: Mapping[str, Any], bits: int, depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind[0] if isinstance(kind, list) and kind else kind:
        case "object":
            return _object(schema, root, bits, depth)
        case "array":
            item = schema.get("items", {})
            return [_value(item, root, mix(bits, i), depth + 1) for i in range(schema.get("minItems", 1))]
        case "string":
            return _string(schema, bits)
        case other:
            return _scalar(other, schema.get("minimum", 1))


def _scalar(kind: Any, minimum: float) -> Any:
    match kind:
        case "integer":
            return int(minimum)
        case "number":
            return float(minimum)
        case "boolean":
            return True
        case "null":
            return None
        case _:
            raise SchemaError(f"Invalid type: {kind}")


def _object(schema: Mapping[str, Any], root: Mapping[str, Any], bits: int, depth: int) -> dict[str, Any]:
    properties = schema.get("properties", {})
    names = [name for name in properties if name in schema["required"]] if "required" in schema else list(properties)
    return {name: _value(properties[name], root, mix(bits, i), depth + 1) for i, name in enumerate(names)}


def _string(schema: Mapping[str, Any], bits: int) -> str:
    text: str = word(bits)
    text += "x" * (int(schema.get("minLength", 0)) - len(text))
    return text[: int(schema.get("maxLength", len(text)))]


def _resolve(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    target: Any = root
    for step in reference.removeprefix("#/").split("/"):
        if not isinstance(target, Mapping) or step not in target:
            raise SchemaError(f"Unresolved reference: {reference}")
        target = target[step]
    if not isinstance(target, Mapping):
        raise SchemaError(f"Unresolved reference: {reference}")
    return target
