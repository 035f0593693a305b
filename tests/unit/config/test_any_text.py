"""Whatever the file holds, it is read or refused with problems."""

from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from router_ext.config.loader import ConfigError
from tests.unit.config.samples import FULL, FULL_ENVIRON, loaded

FULL_TREE = yaml.safe_load(FULL)
WORDS = ["server", "backends", "rules", "name", "url", "{", "}", "[", "]", ":", ": ", "- ", "\n", "  ", "\t", "'", '"']
WORDS += ["|", ">", "&a", "*a", "!!int", "!", "%YAML 1.1", "---", "...", "?", "<<", "#", "\\U00110000", "env:X", "\x00"]

yaml_like = st.lists(st.sampled_from(WORDS) | st.text(max_size=5), max_size=40).map("".join)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
keys = st.text(max_size=5) | st.sampled_from(["name", "url", "enabled"])
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
)


def read(content: str | bytes) -> None:
    """Reads ``content``; a refusal must say why, with one printable line for each problem."""
    try:
        loaded(content, FULL_ENVIRON)
        return
    except ConfigError as error:
        refusal = error
    assert refusal.problems
    lines = str(refusal).split("\n")
    assert len(lines) == len(refusal.problems)
    assert all(line.isprintable() for line in lines)


@given(yaml_like | st.text())
@settings(max_examples=400, deadline=None)
def test_text_is_read_or_refused(text: str) -> None:
    """Nothing but ConfigError comes out of a text."""
    read(text)


@given(st.binary(max_size=80))
def test_bytes_are_read_or_refused(content: bytes) -> None:
    """Nothing but ConfigError comes out of bytes."""
    read(content)


@given(st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_full_file_with_anything_at_any_place_is_read_or_refused(data: st.DataObject) -> None:
    """Every reader meets every kind of value."""
    read(yaml.safe_dump(mutated(FULL_TREE, data)))


def mutated(tree: Any, data: st.DataObject) -> Any:
    """``tree`` with one value, drawn at any depth, replaced by anything."""
    if isinstance(tree, dict) and tree and data.draw(st.integers(0, 5)):
        key = data.draw(st.sampled_from(sorted(tree)))
        return {**tree, key: mutated(tree[key], data)}
    if isinstance(tree, list) and tree and data.draw(st.integers(0, 5)):
        index = data.draw(st.integers(0, len(tree) - 1))
        return [*tree[:index], mutated(tree[index], data), *tree[index + 1 :]]
    return data.draw(anything)
