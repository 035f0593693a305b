"""The table of which backends hold which prefixes."""

import tracemalloc

import pytest

from router_ext.model.prefix import Boundary, Prompt
from router_ext.routing.pins import HOLDS_PER_ENTRY, MAX_HOLDERS, PinTable


def prompt(*keys: str) -> Prompt:
    """A chain with a boundary every 100 bytes."""
    return Prompt(tuple(Boundary(key.encode(), 100 * (i + 1)) for i, key in enumerate(keys)), 100 * len(keys))


def table(ttl_s: float = 60.0, max_entries: int = 100) -> PinTable:
    """An empty table with room enough."""
    return PinTable(ttl_s, max_entries)


def test_an_empty_table_matches_nothing() -> None:
    """Nor does a prompt without boundaries match a full one."""
    pins = table()
    assert pins.match(prompt("s"), 0.0) == {}
    pins.insert(prompt("s"), "a", 0.0)
    assert pins.match(Prompt(), 0.0) == {}


def test_the_longest_prefix_of_each_backend_counts() -> None:
    """Longest first."""
    pins = table()
    pins.insert(prompt("s"), "a", 0.0)
    pins.insert(prompt("s", "u"), "b", 1.0)
    pins.insert(prompt("s", "u", "v"), "c", 2.0)
    assert list(pins.match(prompt("s", "u", "w"), 3.0).items()) == [("c", 200), ("b", 200), ("a", 100)]


def test_equal_prefixes_come_in_order_of_their_last_use() -> None:
    """Whoever served it last comes first."""
    pins = table()
    pins.insert(prompt("s"), "a", 0.0)
    pins.insert(prompt("s"), "b", 1.0)
    pins.insert(prompt("s"), "a", 2.0)
    assert list(pins.match(prompt("s"), 3.0)) == ["a", "b"]


def test_every_boundary_of_an_inserted_prompt_matches() -> None:
    """Another tail, or a shorter prompt, finds what is shared."""
    pins = table()
    pins.insert(prompt("s", "u", "v"), "a", 0.0)
    assert len(pins) == 3
    assert pins.match(prompt("s", "u"), 0.0) == {"a": 200}
    assert pins.match(prompt("s", "x"), 0.0) == {"a": 100}
    assert pins.match(prompt("x", "y"), 0.0) == {}


def test_a_look_that_touches_nothing_leaves_the_table_as_it_is() -> None:
    """It finds the same; what has expired stays for others to remove, and the oldest entry is the first to go."""
    pins = table(ttl_s=10.0, max_entries=2)
    pins.insert(prompt("s"), "a", 0.0)
    pins.insert(prompt("t"), "b", 1.0)
    assert pins.match(prompt("s"), 2.0, touches=False) == {"a": 100}
    assert pins.match(prompt("s"), 10.0, touches=False) == {}
    assert len(pins) == 2
    pins.insert(prompt("u"), "b", 3.0)
    assert pins.match(prompt("s"), 3.0) == {}
    assert pins.match(prompt("t"), 3.0) == {"b": 100}


def test_a_hold_ends_after_the_ttl() -> None:
    """It counts until just before, and is gone from then on; a match removes what it finds expired."""
    pins = table(ttl_s=10.0)
    pins.insert(prompt("s", "u"), "a", 5.0)
    assert pins.match(prompt("s", "u"), 14.999) == {"a": 200}
    assert pins.match(prompt("s", "u"), 15.0) == {}
    assert len(pins) == 0


def test_each_backend_of_an_entry_expires_by_itself() -> None:
    """Only a success of the same backend renews its hold; a match does not."""
    pins = table(ttl_s=10.0)
    pins.insert(prompt("s"), "a", 0.0)
    pins.insert(prompt("s"), "b", 5.0)
    pins.match(prompt("s"), 9.0)
    assert pins.match(prompt("s"), 10.0) == {"b": 100}
    pins.insert(prompt("s"), "a", 11.0)
    assert pins.match(prompt("s"), 15.0) == {"a": 100}


def test_expired_entries_leave_when_something_is_inserted() -> None:
    """A table that nobody asks does not stay full."""
    pins = table(ttl_s=10.0)
    pins.insert(prompt("s", "u"), "a", 0.0)
    pins.insert(prompt("x"), "a", 10.0)
    assert len(pins) == 1


def test_the_least_recently_used_entry_makes_room() -> None:
    """At the limit all stay; one more pushes one out."""
    pins = table(max_entries=2)
    pins.insert(prompt("s"), "a", 0.0)
    pins.insert(prompt("t"), "a", 1.0)
    assert len(pins) == 2
    pins.insert(prompt("u"), "a", 2.0)
    assert len(pins) == 2
    assert [key for key in "stu" if pins.match(prompt(key), 3.0)] == ["t", "u"]


def test_a_match_counts_as_a_use() -> None:
    """What is looked up stays, what is not goes."""
    pins = table(max_entries=2)
    pins.insert(prompt("s"), "a", 0.0)
    pins.insert(prompt("t"), "a", 1.0)
    pins.match(prompt("s"), 2.0)
    pins.insert(prompt("u"), "a", 3.0)
    assert [key for key in "stu" if pins.match(prompt(key), 4.0)] == ["s", "u"]


def test_short_prefixes_outlive_long_ones_of_the_same_prompt() -> None:
    """Others may share them, and without them the long ones are of no use to an engine."""
    pins = table(max_entries=2)
    pins.insert(prompt("s", "u", "v"), "a", 0.0)
    assert pins.match(prompt("s", "u", "v"), 0.0) == {"a": 200}


def test_an_entry_has_a_bounded_number_of_backends() -> None:
    """The one whose last use is oldest makes room."""
    pins = table()
    names = [f"b{i}" for i in range(MAX_HOLDERS)]
    for at, name in enumerate(names):
        pins.insert(prompt("s"), name, at / 10)
    assert set(pins.match(prompt("s"), 20.0)) == set(names)
    pins.insert(prompt("s"), "b0", 20.0)
    pins.insert(prompt("s"), "new", 21.0)
    assert set(pins.match(prompt("s"), 22.0)) == {*names, "new"} - {"b1"}


def test_all_entries_together_have_a_bounded_number_of_backends() -> None:
    """Six holds an entry on the average: where every entry has more, the least recently used ones go early."""
    pins = table(max_entries=10)
    for i in range(10):
        for name in range(10):
            pins.insert(prompt(f"p{i}"), f"b{name}", float(i))
    assert len(pins) == 6
    assert pins.match(prompt("p3"), 10.0) == {}
    assert len(pins.match(prompt("p4"), 10.0)) == 10


def test_a_predicted_hit_that_was_none_is_dropped() -> None:
    """Only beyond what the engine did have, only for that backend; what nobody holds leaves the table."""
    pins = table()
    chain = prompt("s", "u", "v")
    pins.insert(chain, "a", 0.0)
    pins.insert(prompt("s", "u"), "b", 1.0)
    pins.drop(chain, "a", beyond=100)
    assert pins.match(chain, 2.0) == {"b": 200, "a": 100}
    assert len(pins) == 2
    pins.drop(chain, "a", beyond=99)
    assert pins.match(chain, 2.0) == {"b": 200}


def test_dropping_what_is_not_held_changes_nothing() -> None:
    """Neither an unknown backend nor an unknown prompt is an error."""
    pins = table()
    pins.insert(prompt("s"), "a", 0.0)
    pins.drop(prompt("s"), "b", beyond=0)
    pins.drop(prompt("x"), "a", beyond=0)
    assert pins.match(prompt("s"), 1.0) == {"a": 100}


def test_a_forgotten_backend_holds_nothing() -> None:
    """Neither after it comes back, until it serves again; others keep theirs."""
    pins = table()
    pins.insert(prompt("s", "u"), "a", 0.0)
    pins.insert(prompt("s"), "b", 1.0)
    pins.forget("a")
    assert pins.match(prompt("s", "u"), 2.0) == {"b": 100}
    pins.insert(prompt("s"), "a", 3.0)
    assert pins.match(prompt("s", "u"), 4.0) == {"a": 100, "b": 100}


def test_forgetting_an_unknown_backend_is_no_error() -> None:
    """A backend that was removed before it served anything."""
    pins = table()
    pins.forget("a")
    assert len(pins) == 0


def test_entries_of_a_forgotten_backend_only_leave_when_they_are_met() -> None:
    """Forgetting itself costs nothing; a match or an insertion cleans up."""
    pins = table()
    pins.insert(prompt("s", "u"), "a", 0.0)
    pins.forget("a")
    pins.insert(prompt("x"), "b", 1.0)
    assert len(pins) == 1


def test_a_smaller_table_keeps_what_was_used_last() -> None:
    """The new limit holds at once, the new ttl from the next look-up on."""
    pins = table(ttl_s=10.0)
    for at, key in enumerate("stu"):
        pins.insert(prompt(key), "a", float(at))
    pins.resize(ttl_s=5.0, max_entries=2)
    assert len(pins) == 2
    assert [key for key in "stu" if pins.match(prompt(key), 6.0)] == ["u"]


def test_a_table_without_room_holds_nothing() -> None:
    """Zero entries is a limit like any other."""
    pins = table(max_entries=0)
    pins.insert(prompt("s"), "a", 0.0)
    assert len(pins) == 0


def fill(entries: int, holders: int) -> PinTable:
    """A full table of prompts that share nothing with each other."""
    pins = PinTable(1e9, entries)
    for i in range(entries):
        chain = Prompt((Boundary(i.to_bytes(16, "big"), 100),), 100)
        for holder in range(holders):
            pins.insert(chain, f"b{holder}", float(i + holder))
    return pins


@pytest.mark.parametrize("holders", [1, HOLDS_PER_ENTRY, MAX_HOLDERS])
def test_an_entry_takes_less_than_600_bytes(holders: int) -> None:
    """So that 100,000 entries stay below 60 MB. The first filling also fills the interpreter's own free lists."""
    fill(2_000, holders)
    tracemalloc.start()
    pins = fill(5_000, holders)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(pins) == 5_000 * min(1, HOLDS_PER_ENTRY / holders) // 1
    assert size / 5_000 < 600
