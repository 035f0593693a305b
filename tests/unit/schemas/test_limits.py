"""Which schemas are compiled: both sides of every limit."""

import json
from typing import Any

import pytest

from router_ext.schemas.limits import MAX_BYTES, SchemaRefusal, check_schema

D2020 = "https://json-schema.org/draft/2020-12/schema"


def check(schema: Any) -> str | None:
    """The refusal of a schema that is not text yet."""
    return check_schema(json.dumps(schema).encode())


def nested(levels: int) -> bytes:
    """``levels`` objects inside one another."""
    return b'{"not":' * (levels - 1) + b"{}" + b"}" * (levels - 1)


@pytest.mark.parametrize("schema", [True, False, {}, {"type": "object", "properties": {"a": {"type": "integer"}}}])
def test_objects_and_booleans_are_schemas(schema: object) -> None:
    """The two kinds of schemas."""
    assert check(schema) is None


@pytest.mark.parametrize("schema", [None, 1, "true", [], [{}]])
def test_other_values_are_not(schema: object) -> None:
    """JSON Schema 2020-12, section 4.3."""
    assert check(schema) is SchemaRefusal.NOT_A_SCHEMA


@pytest.mark.parametrize("text", [b"", b"{", b'{"type": "object"} x', b"\xff", b'{"const": NaN}'])
def test_what_is_not_json_is_refused(text: bytes) -> None:
    """As strictly as answers."""
    assert check_schema(text) is SchemaRefusal.NOT_JSON


def test_a_key_must_not_come_twice() -> None:
    """Two readers of such a schema may take it for two different ones."""
    assert check_schema(b'{"type": "string", "type": "integer"}') is SchemaRefusal.NOT_JSON


@pytest.mark.parametrize(("size", "refusal"), [(65_536, None), (65_537, SchemaRefusal.TOO_LARGE)])
def test_a_schema_has_at_most_64_kib(size: int, refusal: str | None) -> None:
    """Spaces count."""
    assert MAX_BYTES == 65_536
    assert check_schema(b"{}" + b" " * (size - 2)) is refusal


@pytest.mark.parametrize(
    ("levels", "refusal"), [(64, None), (65, SchemaRefusal.TOO_DEEP), (5_000, SchemaRefusal.TOO_DEEP)]
)
def test_a_schema_has_at_most_64_levels(levels: int, refusal: str | None) -> None:
    """Also more levels than the interpreter recurses."""
    assert check_schema(nested(levels)) is refusal


@pytest.mark.parametrize(("levels", "refusal"), [(64, None), (65, SchemaRefusal.TOO_DEEP)])
def test_arrays_and_data_count_as_levels(levels: int, refusal: str | None) -> None:
    """Values of ``const`` too: the library recurses into them."""
    arrays = levels - 1
    assert check_schema(b'{"const":' + b"[" * arrays + b"]" * arrays + b"}") is refusal


def test_arrays_without_end_are_refused() -> None:
    """Before anything recurses over them."""
    assert check_schema(b"[" * 30_000 + b"]" * 30_000) is SchemaRefusal.TOO_DEEP


@pytest.mark.parametrize(("branches", "refusal"), [(1_000, None), (1_001, SchemaRefusal.TOO_MANY_BRANCHES)])
def test_combinators_have_at_most_1000_branches_together(branches: int, refusal: str | None) -> None:
    """However they are spread."""
    spread = {"properties": {"a": {"oneOf": [True] * 300}, "b": {"allOf": [True] * 300}}}
    assert check({"anyOf": [True] * (branches - 600), **spread}) is refusal


def test_data_is_not_taken_for_combinators() -> None:
    """What ``const``, ``enum``, ``default`` and ``examples`` hold is no schema; a property may have any name."""
    data = {"anyOf": [1] * 1_001, "$ref": "http://x.invalid/", "$schema": "urn:x"}
    assert check({"const": data}) is None
    assert check({"enum": [data], "default": data, "examples": [data]}) is None
    assert check({"properties": {"const": data}}) is SchemaRefusal.TOO_MANY_BRANCHES
    assert check({"properties": {"$ref": {"type": "string"}, "$schema": {}, "$id": {}, "anyOf": {}}}) is None


@pytest.mark.parametrize(
    "draft",
    [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema",
        "https://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2020-12/schema#",
    ],
)
def test_drafts_4_to_2020_12_are_known(draft: str) -> None:
    """In the spellings that are in use."""
    assert check({"$schema": draft}) is None
    assert check({"$schema": draft, "properties": {"a": {"$ref": draft}}}) is None


@pytest.mark.parametrize(
    "draft",
    [
        "http://json-schema.org/draft-03/schema#",
        "https://json-schema.org/draft/next/schema",
        "http://127.0.0.1/schema",
        "file:///etc/passwd",
        "https://json-schema.org.example.com/draft-07/schema",
        "draft-07",
        "",
    ],
)
def test_other_drafts_are_refused(draft: str) -> None:
    """A meta-schema is never fetched."""
    assert check({"$schema": draft}) is SchemaRefusal.UNKNOWN_DRAFT
    assert check({"$defs": {"a": {"$schema": draft}}}) is SchemaRefusal.UNKNOWN_DRAFT


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef", "$recursiveRef"])
@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1:8080/schema.json",
        "https://example.com/schema#/$defs/a",
        "file:///etc/passwd",
        "//example.com/x",
        "other.json",
        "/etc/passwd",
        "?x",
        "urn:example:a",
        "ftp://example.com/x",
        "https://json-schema.org.example.com/draft-07/schema",
        "http://[",
    ],
)
def test_a_reference_out_of_the_schema_is_refused(keyword: str, uri: str) -> None:
    """Wherever it stands."""
    assert check({keyword: uri}) is SchemaRefusal.REMOTE_REFERENCE
    assert check({"properties": {"a": {"items": {keyword: uri}}}}) is SchemaRefusal.REMOTE_REFERENCE
    assert check({"components": {"schemas": {"a": {keyword: uri}}}}) is SchemaRefusal.REMOTE_REFERENCE


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": {}}},
        {"$ref": "#/components/schemas/a", "components": {"schemas": {"a": {}}}},
        {"$ref": "#a", "$defs": {"a": {"$anchor": "a"}}},
        {"properties": {"a": {"$ref": "#"}}},
        {"$ref": f"{D2020}"},
        {"$ref": "https://json-schema.org/draft/2020-12/meta/core"},
        {"$id": "https://example.com/root", "properties": {"a": {"$ref": "#"}}},
        {"$id": "https://example.com/root", "properties": {"a": {"$ref": "https://example.com/root"}}},
        {"$id": "https://example.com/root", "$ref": "a", "$defs": {"a": {"$id": "https://example.com/a"}}},
        {"$id": "https://example.com/root", "$ref": "/a#x", "$defs": {"a": {"$id": "a", "$anchor": "x"}}},
        {"id": "http://example.com/root", "items": {"$ref": "a"}, "definitions": {"a": {"id": "a"}}},
        {"$id": "urn:example:root", "items": {"$ref": "#"}},
    ],
)
def test_a_reference_into_the_schema_is_not(schema: object) -> None:
    """By pointer, anchor or id, and known meta-schemas. An id may be any URI: it is a name."""
    assert check(schema) is None


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"anyOf": [{"type": "string"}, {"$ref": "#"}]},
        {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"allOf": [{"$ref": "#/$defs/a"}]}}},
        {"$defs": {"a": {"not": {"$ref": "#/$defs/a"}}}},
        {"$defs": {"a": {"$anchor": "me", "if": {"$ref": "#me"}}}},
        {"$dynamicAnchor": "me", "oneOf": [{"$dynamicRef": "#me"}]},
        {"dependentSchemas": {"a": {"$ref": "#"}}},
        {"$recursiveRef": "#"},
        {"$id": "https://example.com/root", "allOf": [{"$ref": "root"}]},
        {"$defs": {"a/b~c": {"$ref": "#/$defs/a~1b~0c"}}},
        {"$defs": {"a": {"anyOf": [{}, {"$ref": "#/$defs/a/anyOf/1"}]}}},
    ],
)
def test_a_schema_that_leads_back_on_the_same_value_is_refused(schema: object) -> None:
    """JSON Schema 2020-12, section 9.4.1: validation would not end."""
    assert check(schema) is SchemaRefusal.ENDLESS


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"children": {"items": {"$ref": "#"}}}},
        {"$defs": {"n": {"anyOf": [{"type": "null"}, {"properties": {"next": {"$ref": "#/$defs/n"}}}]}}},
        {"anyOf": [{"$ref": "#/$defs/a"}, {"allOf": [{"$ref": "#/$defs/a"}]}], "$defs": {"a": {}}},
        {"$dynamicAnchor": "node", "items": {"$dynamicRef": "#node"}},
        {"allOf": [{"$ref": "#/nowhere/at/all"}]},
        {"allOf": [{"$ref": "#/allOf/1"}, {"$ref": "#/allOf/" + "9" * 5_000}, {"$ref": "#/allOf/\u00b2"}]},
        {"properties": {"not": {"$ref": "#"}, "allOf": {"items": {"$ref": "#"}}}},
    ],
)
def test_recursion_into_the_value_is_legal(schema: object) -> None:
    """Trees and lists; using a definition twice is no recursion."""
    assert check(schema) is None


def test_a_long_chain_of_references_is_followed_without_recursion() -> None:
    """1,400 definitions, each of which refers to the next; the last one may close the circle."""
    chain: dict[str, object] = {f"a{i}": {"$ref": f"#/$defs/a{i + 1}"} for i in range(1_400)}
    assert check({"$defs": {**chain, "a1400": {}}}) is None
    assert check({"$defs": {**chain, "a1400": {"$ref": "#/$defs/a0"}}}) is SchemaRefusal.ENDLESS
