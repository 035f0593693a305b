"""JSON of an admin page, whatever it holds."""

import orjson
import pytest

from router_ext.doctor.node import Node


@pytest.mark.parametrize("value", [None, 1, True, "x", [], {}, {"a": 1}, [{"a": {}}]], ids=repr)
def test_a_missing_place_is_empty(value: object) -> None:
    """No shape of a document makes a walk fail."""
    place = Node(value).at("a", "b")
    assert (place.exists, place.text, place.flag, place.whole(7), place.seconds(2.0)) == (False, "", False, 7, 2.0)
    assert not list(place.each())
    assert not list(place.entries())


def test_text_is_fit_for_a_terminal() -> None:
    """Control characters are left out, and the end of what is long."""
    assert Node("a\x1b[31m\n\u202eb").text == "a[31mb"
    assert len(Node("x" * 1000).text) == 200


@pytest.mark.parametrize(
    ("value", "expected"),
    [(3, 3), ("3", 3), ("-3", -3), (True, -1), ("3s", -1), (3.5, -1), ("9" * 40, -1), (None, -1)],
    ids=repr,
)
def test_whole_numbers_may_be_text(value: object, expected: int) -> None:
    """Protobuf writes numbers of 64 bits as text."""
    assert Node(value).whole(-1) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1s", 1.0), ("0.250s", 0.25), ("0s", 0.0), ("1", -1.0), (1, -1.0), ("1m", -1.0), ("s", -1.0)],
    ids=repr,
)
def test_durations_end_in_s(value: object, expected: float) -> None:
    """Anything else is not a duration."""
    assert Node(value).seconds(-1.0) == expected


def test_the_same_may_be_written_in_two_ways() -> None:
    """``1s`` and ``1.000s``, ``3`` and ``"3"`` are the same; the order in a list counts."""
    one = {"a": ["1s", 3], "b": {"c": True}}
    assert Node(one).same_as(Node({"b": {"c": True}, "a": ["1.000s", "3"]}))
    assert not Node(one).same_as(Node({"b": {"c": True}, "a": [3, "1s"]}))
    assert not Node(one).same_as(Node({"a": ["1s", 3]}))


def test_a_deep_document_is_compared_without_a_fault() -> None:
    """As deep as the JSON reader lets through."""
    deep = Node(orjson.loads("[" * 900 + "]" * 900))
    assert deep.same_as(deep)
    assert not deep.same_as(Node([]))
