"""PREF-01: a key must stand for everything before it, not for one block of text wherever it stands."""

from router_ext.routing.pins import PinTable
from tests.fakes.prompts import LONG, chat, message, shared

A, B, X = message("A" + LONG), message("B" + LONG), message("x")


def test_text_seen_elsewhere_is_no_prefix() -> None:
    """Of a conversation that begins with B, only the backend that served B first holds anything."""
    pins = PinTable(60.0, 100)
    pins.insert(chat(A).extended(), "backend-1", 0.0)
    pins.insert(chat(B).extended(), "backend-2", 1.0)
    assert pins.match(chat(B, A, X).prompt, 2.0) == {"backend-2": 4401}


def test_the_same_messages_in_another_order_share_nothing() -> None:
    """[A, B] and [B, A] never match each other."""
    assert shared(chat(A, B).prompt, chat(B, A).prompt) == 0


def test_the_longest_prefix_wins() -> None:
    """Both backends began alike, one of them went further."""
    pins = PinTable(60.0, 100)
    pins.insert(chat(A).extended(), "backend-1", 0.0)
    pins.insert(chat(A, B).extended(), "backend-2", 1.0)
    assert list(pins.match(chat(A, B, X).prompt, 2.0).items()) == [("backend-2", 8802), ("backend-1", 4401)]
