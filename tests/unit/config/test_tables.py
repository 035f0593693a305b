"""The tables of fields: whole, and true to the dataclasses."""

import dataclasses

import pytest

from router_ext.config.root import ROOT
from router_ext.config.section import Field, Items, Keyed, Section, defaults

NO_KEYS = {"Budget": {"service"}, "RateLimit": {"service"}, "RouterConfig": {"drained"}}
"""Attributes that are the key of a table, or that only the admin API sets."""


def sections(section: Section[object]) -> list[Section[object]]:
    """``section`` and all sections below it."""
    found = [section]
    for field in section.fields:
        reader = field.reader
        inner = reader.item if isinstance(reader, Items) else reader
        inner = inner.section if isinstance(inner, Keyed) else inner
        if isinstance(inner, Section):
            found += sections(inner)
    return found


ALL = sections(ROOT)


@pytest.mark.parametrize("section", ALL, ids=lambda section: section.target.__name__)
def test_a_table_has_every_attribute_of_its_dataclass(section: Section[object]) -> None:
    """No attribute is out of the user's reach, no field ends nowhere."""
    attributes = {field.name for field in dataclasses.fields(section.target)}  # type: ignore[arg-type]
    assert {field.name for field in section.fields} == attributes - NO_KEYS.get(section.target.__name__, set())


def test_every_field_has_one_line_of_documentation() -> None:
    """A reference can be printed from the tables."""
    fields: list[Field] = [field for section in ALL for field in section.fields]
    assert len(fields) > 70
    assert not [field.key for field in fields if not field.doc.endswith(".") or "\n" in field.doc]
    assert not [field.key for field in fields if not field.reader.expects]


def test_defaults_are_those_of_the_dataclass() -> None:
    """An attribute without a default is not among them."""
    backend = next(section for section in ALL if section.target.__name__ == "Backend")
    assert defaults(backend.target)["max_concurrent"] == 64
    assert "name" not in defaults(backend.target)
