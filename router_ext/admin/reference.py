"""The page of the admin API, written from its OpenAPI document."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

Json = Mapping[str, Any]
Table = Callable[[Sequence[str], Sequence[Sequence[str]]], str]

_REF: Final = "#/components/schemas/"
_COMMON: Final = frozenset({"400", "401", "403", "413", "422"})
"""Statuses that the introduction explains."""


def parts(document: Json, table: Table) -> Iterator[str]:
    """The page's parts below its title. ``table`` makes one of a head and rows."""
    yield str(document["info"]["description"])
    operations = [
        (method, path, operation) for path, item in document["paths"].items() for method, operation in item.items()
    ]
    rows = [(f"`{method.upper()} {path}`", _first(operation)) for method, path, operation in operations]
    yield "## Routes\n\n" + table(("route", "does"), rows)
    yield "## Refusals of every route\n\n" + table(("status", "when"), _refusals(operations))
    yield "## Routes in full"
    yield from (_operation(method, path, operation, table) for method, path, operation in operations)
    schemas = document["components"]["schemas"]
    yield "## Bodies\n\n" + "\n\n".join(_schema(name, schemas[name], table) for name in sorted(schemas))


def _first(operation: Json) -> str:
    """The first sentence."""
    text = " ".join(str(operation["description"]).split())
    return text.split(". ")[0].rstrip(".") + "."


def _refusals(operations: Sequence[tuple[str, str, Json]]) -> list[tuple[str, str]]:
    changing = next(operation for method, _, operation in operations if method == "put")
    return [(status, str(changing["responses"][status]["description"])) for status in sorted(_COMMON)]


def _operation(method: str, path: str, operation: Json, table: Table) -> str:
    text = " ".join(str(operation["description"]).split())
    rows = [
        (f"`{item['name']}` ({item['in']})", _type(item["schema"]), str(item.get("description", "")))
        for item in operation.get("parameters", ())
    ]
    body = operation.get("requestBody")
    if body is not None:
        rows.append(("body", _content(body), ""))
    answers = [
        (status, _content(answer), str(answer["description"]))
        for status, answer in sorted(operation["responses"].items())
        if status not in _COMMON or (status == "400" and "parameter" in answer["description"])
    ]
    taken = [table(("takes", "type", "meaning"), rows)] if rows else []
    return "\n\n".join((f"### `{method.upper()} {path}`", text, *taken, table(("status", "body", "when"), answers)))


def _content(holder: Json) -> str:
    for media, content in holder.get("content", {}).items():
        return _type(content["schema"]) if media == "application/json" else f"`{media}`"
    return "none"


def _schema(name: str, schema: Json, table: Table) -> str:
    required = set(schema.get("required", ()))
    rows = [
        (f"`{key}`", _type(item), _need(key, item, required), str(item.get("description", "")))
        for key, item in schema.get("properties", {}).items()
    ]
    text = " ".join(str(schema.get("description", "")).split())
    return "\n\n".join((f"### {name}", text, table(("key", "type", "default", "meaning"), rows)))


def _need(key: str, item: Json, required: set[str]) -> str:
    if key in required:
        return "always"
    return f"`{json.dumps(item['default'])}`" if "default" in item else "none"


def _type(schema: Json) -> str:
    """In words: a link for a body of its own."""
    if "$ref" in schema:
        name = str(schema["$ref"]).removeprefix(_REF)
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(option) for option in schema["anyOf"])
    words = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return ", ".join(f"`{word}`" for word in words) or _plain_type(schema)


def _plain_type(schema: Json) -> str:
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    more = schema.get("additionalProperties")
    if isinstance(more, Mapping) and more:
        return f"{_type(more)} by name"
    return str(schema.get("type", "any"))
