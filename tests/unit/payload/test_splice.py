"""Edits of byte ranges."""

from router_ext.payload.splice import Edit, spliced


def test_edits_apply_in_any_order() -> None:
    """Positions are those of the original bytes."""
    assert spliced(b"0123456789", [Edit(8, 9, b"EIGHT"), Edit(1, 3, b"")]) == b"034567EIGHT9"


def test_an_empty_range_is_an_insertion() -> None:
    """At the start, in between and at the end."""
    assert spliced(b"ab", [Edit(0, 0, b"<"), Edit(1, 1, b"-"), Edit(2, 2, b">")]) == b"<a-b>"


def test_no_edit_gives_the_same_bytes() -> None:
    """Nothing is lost."""
    assert spliced(b"ab", []) == b"ab"
