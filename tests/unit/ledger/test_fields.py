"""Parts of a ledger as fields of a hash."""

import pytest

from router_ext.ledger.fields import name_of, part_of, value_of
from router_ext.model.ledger import MAX_COUNT, Part, Row
from tests.fakes.ledger import TODAY, key

PART = Part("r-1", Row(key("shop", "a", "größe/7b", "fallback"), 3, 1, 300, 120, 21, 30))
NAME = '["r-1","shop","a","größe/7b","fallback"]'.encode()
VALUE = b"[3,1,300,120,21,30]"


def test_a_part_is_two_arrays_that_can_be_read() -> None:
    """And nothing of it is lost; the day is that of the hash."""
    assert (name_of(PART), value_of(PART)) == (NAME, VALUE)
    assert part_of(TODAY, NAME, VALUE) == PART
    most = Part("r-1", Row(key(), *[MAX_COUNT] * 6))
    assert part_of(TODAY, name_of(most), value_of(most)) == most


def test_what_a_later_version_adds_is_skipped() -> None:
    """At the end of either array."""
    assert part_of(TODAY, NAME[:-1] + b',"new"]', VALUE[:-1] + b",9]") == PART


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b"", VALUE),
        (b"shop", VALUE),
        (b'["r-1","shop","a","m"]', VALUE),
        (b'["","shop","a","m","proxied"]', VALUE),
        (b'["r-1","sh\\nop","a","m","proxied"]', VALUE),
        (b'["r-1","shop","a",7,"proxied"]', VALUE),
        (b'["r-1","shop","a","\xff","proxied"]', VALUE),
        (NAME, b"3 1 300 120 21 30"),
        (NAME, b"[3,1,300,120,21]"),
        (NAME, b"[-3,1,300,120,21,30]"),
        (NAME, b"[3,1,300,120,21,0.5]"),
        (NAME, b"[3,1,300,120,21,9007199254740993]"),
        (NAME, b"[" * 10_000),
    ],
)
def test_what_is_no_part_is_none(name: bytes, value: bytes) -> None:
    """Whoever reaches the server may write anything."""
    assert part_of(TODAY, name, value) is None
