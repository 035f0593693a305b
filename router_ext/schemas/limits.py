"""Which schemas are compiled at all. Pure.

What passes may still be costly or wrong: that shows in a process that can be killed (see ``court``).
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from router_ext.schemas.places import BadReferenceError, Places
from router_ext.schemas.strict import UNREADABLE, parse

MAX_BYTES: Final = 64 * 1024
"""Largest schema. One of 1,000 described properties has about 60 KB."""

MAX_DEPTH: Final = 64
"""Most objects and arrays inside one another. OpenAI's strict mode takes 10 levels of a value, each of which needs up
to six here (a schema, ``properties``, a schema, ``anyOf``, a branch, ``items``). The library itself takes 127.
"""

MAX_BRANCHES: Final = 1000
"""Most subschemas of all ``allOf``, ``anyOf`` and ``oneOf`` together. 3,000 take 5 ms to compile."""

COMBINATORS: Final = ("allOf", "anyOf", "oneOf")


class SchemaRefusal(StrEnum):
    """Why a schema is not compiled."""

    TOO_LARGE = "too_large"
    NOT_JSON = "not_json"
    NOT_A_SCHEMA = "not_a_schema"
    TOO_DEEP = "too_deep"
    TOO_MANY_BRANCHES = "too_many_branches"
    UNKNOWN_DRAFT = "unknown_draft"
    REMOTE_REFERENCE = "remote_reference"
    ENDLESS = "endless"


def check_schema(text: bytes) -> SchemaRefusal | None:
    """Why the schema is refused, the first reason in the order of ``SchemaRefusal``; None when it may be compiled.

    JSON is read as ``strict.parse`` does, so a key must not come twice. A schema is an object or a boolean. References
    (``$ref``, ``$dynamicRef``, ``$recursiveRef``) lead into the schema itself, also to a part that has the ``$id``
    they name, or to a meta-schema of drafts 4 to 2020-12; ``$schema`` names one of these drafts. ``$id`` is free: it is
    a name, and nothing is fetched by it. Subschemas that apply to the same value must not lead back to themselves.

    A schema of 2 KB takes 0.3 ms, bad ones take 35 ms and more: nothing for an event loop.
    """
    if len(text) > MAX_BYTES:
        return SchemaRefusal.TOO_LARGE
    try:
        schema = parse(text)
    except RecursionError:
        return SchemaRefusal.TOO_DEEP
    except UNREADABLE:
        return SchemaRefusal.NOT_JSON
    if not isinstance(schema, dict | bool):
        return SchemaRefusal.NOT_A_SCHEMA
    if _is_deeper(schema, MAX_DEPTH):
        return SchemaRefusal.TOO_DEEP
    return _check_places(schema) if isinstance(schema, dict) else None


def _check_places(schema: dict[str, object]) -> SchemaRefusal | None:
    try:
        places = Places(schema)
    except BadReferenceError:
        return SchemaRefusal.REMOTE_REFERENCE
    if sum(_branches(place.schema) for place in places) > MAX_BRANCHES:
        return SchemaRefusal.TOO_MANY_BRANCHES
    if places.has_unknown_draft():
        return SchemaRefusal.UNKNOWN_DRAFT
    if places.has_remote_reference():
        return SchemaRefusal.REMOTE_REFERENCE
    return SchemaRefusal.ENDLESS if places.lead_back() else None


def _branches(schema: dict[str, object]) -> int:
    branches = (schema.get(keyword) for keyword in COMBINATORS)
    return sum(len(found) for found in branches if isinstance(found, list))


def _is_deeper(value: object, limit: int) -> bool:
    """Whether more than ``limit`` objects and arrays are inside one another. Does not recurse: that has a limit too."""
    level = _containers([value])
    for _ in range(limit):
        level = [child for parent in level for child in _containers(_members(parent))]
    return bool(level)


def _containers(values: Iterable[object]) -> list[dict[str, object] | list[object]]:
    return [value for value in values if isinstance(value, dict | list)]


def _members(container: dict[str, object] | list[object]) -> Iterable[object]:
    return container.values() if isinstance(container, dict) else container
