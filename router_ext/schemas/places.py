"""The subschemas of a schema, and where its references lead. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Final
from urllib.parse import unquote, urljoin

REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")

DRAFTS: Final = frozenset(
    {
        "json-schema.org/schema",
        "json-schema.org/draft-04/schema",
        "json-schema.org/draft-06/schema",
        "json-schema.org/draft-07/schema",
        "json-schema.org/draft/2019-09/schema",
        "json-schema.org/draft/2020-12/schema",
    }
)
"""Meta-schemas without scheme and fragment, as both are often written otherwise than the specification has them."""

_VOCABULARIES: Final = ("json-schema.org/draft/2019-09/meta/", "json-schema.org/draft/2020-12/meta/")

_DATA: Final = frozenset({"const", "enum", "default", "examples"})
"""Keywords whose values are no schemas, whatever they look like."""

_MAPS: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)
"""Keywords whose values are objects of subschemas by a name that is no keyword."""

_SAME_VALUE: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")
"""Keywords whose subschemas apply to the value that the schema applies to."""

_INDEX_DIGITS: Final = 6
"""Longest index of an array: Python refuses to read very long numbers."""


class BadReferenceError(ValueError):
    """A reference or an id that is no URI reference."""


@dataclass(frozen=True, slots=True)
class Place:
    """A subschema, and the URI that its references are relative to: "" in a schema without an id."""

    schema: dict[str, object]
    base: str

    def references(self) -> Iterator[str]:
        """The absolute URIs of what it refers to."""
        for keyword in REFERENCES:
            if isinstance(reference := self.schema.get(keyword), str):
                yield _joined(self.base, reference)


class Places:
    """All subschemas of an object, which may be up to about 300 levels deep. Raises BadReferenceError.

    Keywords that are not known are looked into as well: ``#/components/schemas/a`` is a usual reference.
    """

    def __init__(self, schema: dict[str, object]) -> None:
        self._places: list[Place] = []
        self._resources: dict[str, dict[str, object]] = {"": schema}
        self._anchors: dict[str, dict[str, object]] = {}
        self._add(schema, "")

    def __iter__(self) -> Iterator[Place]:
        return iter(self._places)

    def has_unknown_draft(self) -> bool:
        """Whether a ``$schema`` is none of ``DRAFTS``."""
        named = (place.schema.get("$schema") for place in self._places)
        return any(isinstance(name, str) and _plain(name) not in DRAFTS for name in named)

    def has_remote_reference(self) -> bool:
        """Whether a reference leads neither into the schema nor to a known meta-schema."""
        return any(not self._is_local(uri) for place in self._places for uri in place.references())

    def lead_back(self) -> bool:
        """Whether a subschema applies, by references and combinators, to the same value once more.

        JSON Schema 2020-12, section 9.4.1: such a schema must not be run, its behaviour is undefined.
        """
        sorter: TopologicalSorter[int] = TopologicalSorter()
        for place in self._places:
            sorter.add(id(place.schema), *(id(next_schema) for next_schema in self._on_same_value(place)))
        try:
            sorter.prepare()
        except CycleError:
            return True
        return False

    def _is_local(self, uri: str) -> bool:
        document = uri.partition("#")[0]
        return document in self._resources or _plain(document) in DRAFTS or _plain(document).startswith(_VOCABULARIES)

    def _on_same_value(self, place: Place) -> Iterator[dict[str, object]]:
        for keyword in _SAME_VALUE:
            yield from _schemas_of(keyword, place.schema.get(keyword))
        for uri in place.references():
            if isinstance(target := self._target(uri), dict):
                yield target

    def _target(self, uri: str) -> object:
        """What a reference leads to; None when nothing is there."""
        document, _, fragment = uri.partition("#")
        if fragment and not fragment.startswith("/"):
            return self._anchors.get(uri)
        target: object = self._resources.get(document)
        for token in unquote(fragment).split("/")[1:]:
            target = _member(target, token.replace("~1", "/").replace("~0", "~"))
        return target

    def _add(self, schema: dict[str, object], base: str) -> None:
        base = self._named(schema, base)
        self._places.append(Place(schema, base))
        for keyword, value in schema.items():
            if keyword not in _DATA:
                for subschema in _schemas_of(keyword, value):
                    self._add(subschema, base)

    def _named(self, schema: dict[str, object], base: str) -> str:
        """Remembers the names of a subschema and returns the base inside it."""
        for keyword in ("$id", "id"):
            if isinstance(name := schema.get(keyword), str):
                uri, _, fragment = _joined(base, name).partition("#")
                # Drafts 4 to 7 write an anchor as an id of a fragment only.
                if fragment:
                    self._anchors[f"{uri}#{fragment}"] = schema
                else:
                    self._resources[uri] = schema
                    base = uri
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(name := schema.get(keyword), str):
                self._anchors[f"{base}#{name}"] = schema
        return base


def _schemas_of(keyword: str, value: object) -> Iterator[dict[str, object]]:
    match value:
        case dict() if keyword in _MAPS:
            yield from (child for child in value.values() if isinstance(child, dict))
        case dict():
            yield value
        case list():
            yield from (child for child in value if isinstance(child, dict))


def _member(value: object, token: str) -> object:
    match value:
        case dict():
            return value.get(token)
        case list() if token.isascii() and token.isdecimal() and len(token) <= _INDEX_DIGITS:
            return value[int(token)] if int(token) < len(value) else None
    return None


def _joined(base: str, reference: str) -> str:
    if reference.startswith("#"):
        return base + reference
    try:
        return urljoin(base, reference)
    except ValueError as error:
        raise BadReferenceError from error


def _plain(uri: str) -> str:
    return uri.removeprefix("http://").removeprefix("https://").removesuffix("#")
