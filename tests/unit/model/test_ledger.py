"""Rows of costs: what one call adds, and how rows become one."""

from datetime import date

import pytest

from router_ext.model.ledger import MAX_COUNT, Part, Row, row_of, summed, united
from router_ext.model.outcome import Usage
from tests.fakes.ledger import key, row


def test_the_row_of_a_call_says_what_its_engine_told() -> None:
    """One call; an estimated one is counted as such too."""
    assert row_of(key(), Usage(100, 7, 40), 12, estimated=False) == Row(key(), 1, 0, 100, 40, 7, 12)
    assert row_of(key(), Usage(100, 7), 12, estimated=True) == Row(key(), 1, 1, 100, 0, 7, 12)


@pytest.mark.parametrize(
    ("usage", "micro_usd", "expected"),
    [
        (Usage(-1, -1, -1), -1, (0, 0, 0, 0)),
        (Usage(10, 0, 10), 0, (10, 10, 0, 0)),
        (Usage(10, 0, 11), 0, (10, 10, 0, 0)),
        (Usage(MAX_COUNT, MAX_COUNT, 0), MAX_COUNT, (MAX_COUNT, 0, MAX_COUNT, MAX_COUNT)),
        (Usage(10**30, 10**30, 10**30), 10**30, (MAX_COUNT, MAX_COUNT, MAX_COUNT, MAX_COUNT)),
    ],
)
def test_what_an_engine_makes_up_stays_in_the_range_of_a_row(
    usage: Usage, micro_usd: int, expected: tuple[int, ...]
) -> None:
    """A database has 64 bits, and one row that does not fit would keep all others from being written."""
    row = row_of(key(), usage, micro_usd, estimated=False)
    assert (row.prompt_tokens, row.cached_tokens, row.completion_tokens, row.micro_usd) == expected


def test_rows_of_one_key_add_up_to_the_highest_number_and_no_further() -> None:
    """Each number by itself."""
    one, other = Row(key(), 1, 2, 3, 4, 5, MAX_COUNT - 1), Row(key(), 10, 20, 30, 40, 50, 1)
    assert one.plus(other) == Row(key(), 11, 22, 33, 44, 55, MAX_COUNT)
    assert one.plus(other).plus(other) == Row(key(), 21, 42, 63, 84, 105, MAX_COUNT)


def test_sums_have_one_row_for_each_key_in_their_order() -> None:
    """Days first, then names; any difference makes another row."""
    early = key(day=date(2026, 12, 1), service="z")
    keys = [early, key(service="a"), key(), key(kind="shadow"), key(model="n"), key(backend="b")]
    rows = [Row(each, 1, 0, 0, 0, 0, number) for number, each in enumerate(keys)]
    assert [(row.key, row.calls, row.micro_usd) for row in summed([*reversed(rows), *rows])] == [
        (each, 2, 2 * number) for number, each in enumerate(keys)
    ]
    assert summed([]) == []


def test_of_one_part_from_several_sources_the_newest_counts() -> None:
    """In whatever order they come; parts of different processes are added."""
    parts = [Part("one", row(key(), 2, 20)), Part("one", row(key(), 3, 30)), Part("two", row(key(), 1, 10))]
    for told in (parts, parts[::-1], parts * 2):
        assert united([*told, Part("one", row(key("blog"), 1, 10))]) == [row(key("blog"), 1, 10), row(key(), 4, 40)]
    assert united([]) == []
