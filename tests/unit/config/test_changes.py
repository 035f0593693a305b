"""Changes as a value, and as what a file keeps."""

import json

import pytest

from router_ext.config.changes import NO_CHANGES, Changes, FileNames, from_json, to_json
from router_ext.config.problem import ConfigError

SPEC = {"url": "http://h", "type": "vllm", "model_name": "m"}


def refused(content: bytes) -> str:
    """The message about a content that must be refused."""
    with pytest.raises(ConfigError) as error:
        from_json(content, "/data/changes.json")
    return str(error.value)


def test_an_edit_gives_another_value_and_leaves_the_first() -> None:
    """Whoever holds the old one sees no difference."""
    one = NO_CHANGES.with_backend("a", SPEC)
    two = one.with_backend("b", SPEC).with_drained("a").with_rule("r", {}).with_budget("s", {})
    assert (dict(NO_CHANGES.backends), list(one.backends), list(two.backends)) == ({}, ["a"], ["a", "b"])
    assert not one.drained
    assert two.drained == {"a"}


def test_a_spec_has_the_name_it_is_kept_by() -> None:
    """What the spec says of its name does not count; a budget has none."""
    changes = NO_CHANGES.with_backend("a", {**SPEC, "name": "b"}).with_budget("s", {"daily_limit_usd": 1})
    assert changes.backends["a"] == {"name": "a", **SPEC}
    assert changes.budgets["s"] == {"daily_limit_usd": 1}


def test_an_existing_name_is_replaced_in_its_place() -> None:
    """Rules of one priority keep their order."""
    changes = NO_CHANGES.with_rule("r", {}).with_rule("s", {}).with_rule("r", {"priority": 1})
    assert list(changes.rules) == ["r", "s"]
    assert changes.rules["r"] == {"name": "r", "priority": 1}


def test_what_is_taken_away_leaves_a_trace_only_where_the_file_has_it() -> None:
    """None stands for what the file has and must not count."""
    changes = NO_CHANGES.with_backend("a", SPEC).with_backend("b", SPEC).with_rule("r", {})
    gone = changes.without_backend("a").without_backend("b").without_rule("r").without_rule("q")
    above = gone.above(FileNames(backends=frozenset("a"), rules=frozenset("q")))
    assert (dict(above.backends), dict(above.rules)) == ({"a": None}, {"q": None})
    assert not gone.above(FileNames())


def test_a_removed_backend_is_not_drained_any_more() -> None:
    """One that comes again by this name takes requests."""
    assert NO_CHANGES.with_drained("a").with_drained("b").without_backend("a").drained == {"b"}
    assert not NO_CHANGES.with_drained("a").without_drained("a")


def test_a_budget_that_is_taken_back_is_the_files_again() -> None:
    """Nothing says that the service has none."""
    assert NO_CHANGES.with_budget("s", {"daily_limit_usd": 1}).without_budget("s") == NO_CHANGES
    assert NO_CHANGES.without_budget("s") == NO_CHANGES


def test_what_is_kept_is_read_again() -> None:
    """Every kind of change, with its order."""
    changes = (
        NO_CHANGES.with_backend("b", SPEC)
        .with_backend("a", SPEC)
        .without_backend("c")
        .with_rule("r", {"backends": ["a"]})
        .without_rule("q")
        .with_budget("s", {"daily_limit_usd": 2.5})
        .with_drained("a")
    )
    again = from_json(to_json(changes), "changes.json")
    assert again == changes
    assert list(again.backends) == ["b", "a", "c"]
    assert json.loads(to_json(changes))["version"] == 1


def test_nothing_changed_is_nothing_to_keep() -> None:
    """The file is then away."""
    assert (to_json(NO_CHANGES), from_json(b"", "changes.json")) == (b"", NO_CHANGES)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is broken: Input data was truncated"),
        (b"[]", "is broken: Expected `object`, got `array`"),
        (b"{}", "has no version"),
        (b'{"version": "1"}', "has no version"),
        (b'{"version": 2}', "has version 2, and this router knows version 1 only"),
        (b'{"version": 1, "backend": {}}', "is broken: Object contains unknown field `backend`"),
        (b'{"version": 1, "backends": {"a": 1}}', "is broken: Expected `object | null`, got `int`"),
        (b'{"version": 1, "drained": "a"}', "is broken: Expected `array`, got `str`"),
        (b"\xff", "is broken: "),
        (b"[" * 100_000, "is broken: "),
    ],
    ids=["cut", "list", "no version", "text", "later", "unknown", "spec", "drained", "no UTF-8", "deep"],
)
def test_a_file_that_cannot_be_used_is_named_with_a_way_out(content: bytes, message: str) -> None:
    """A file of a later version, or one that somebody wrote to."""
    text = refused(content)
    assert text.startswith(f"/data/changes.json: {message}")
    assert text.endswith("mend it, or set it aside with router-ext serve --discard-changes")


def test_what_json_cannot_hold_is_refused() -> None:
    """No half file is made of it."""
    with pytest.raises(ConfigError):
        to_json(Changes(rules={"r": {"priority": 2**70}}))
