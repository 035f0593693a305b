"""What is remembered of conversations that were hashed before."""

from router_ext.engine.known_prompts import KnownPrompts
from router_ext.payload.prompt import PromptStart


def _start(turns: int) -> PromptStart:
    return PromptStart(b"o", turns, b"k", 1, (), begun=True)


def test_a_conversation_goes_on_where_it_was_left() -> None:
    """It must begin with the very messages that were remembered."""
    known = KnownPrompts()
    known.put("s", (b"1", b"2"), _start(2))
    assert known.get("s", (b"1", b"2", b"3")) == _start(2)
    assert known.get("s", (b"1", b"2")) == _start(2)
    assert known.get("s", (b"1",)) is None
    assert known.get("s", (b"1", b"other", b"3")) is None
    assert known.get("t", (b"1", b"2", b"3")) is None


def test_a_start_of_other_turns_is_not_remembered() -> None:
    """Its chain has turns that are no messages, or lacks some."""
    known = KnownPrompts()
    known.put("s", (b"1", b"2"), _start(3))
    assert known.get("s", (b"1", b"2")) is None


def test_the_least_recently_used_go_first() -> None:
    """By the bytes of their messages; a single one over the limit is not kept at all."""
    known = KnownPrompts(10)
    known.put("a", (b"1234",), _start(1))
    known.put("b", (b"5678",), _start(1))
    assert known.get("a", (b"1234",)) is not None
    known.put("c", (b"90",), _start(1))
    assert known.get("b", (b"5678",)) is not None
    known.put("d", (b"x",), _start(1))
    assert known.get("a", (b"1234",)) is None
    known.put("e", (b"12345678901",), _start(1))
    assert known.get("e", (b"12345678901",)) is None
    assert known.get("b", (b"5678",)) is not None


def test_a_new_turn_takes_the_place_of_the_one_before() -> None:
    """A session is counted once."""
    known = KnownPrompts(10)
    for _ in range(5):
        known.put("a", (b"1234",), _start(1))
    known.put("b", (b"123456",), _start(1))
    assert known.get("a", (b"1234",)) is not None
