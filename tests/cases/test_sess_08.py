"""SESS-08: turns that the client had sent were dropped, on the assumption that the gateway held them."""

import json

from router_ext.payload.transcript import Fresh, hydrated
from tests.fakes.prompts import message
from tests.fakes.transcripts import conversation, elements, envelope

SYSTEM = message("Be brief.", "system")
BOOK = message("Book the 9:40 train")
SHALL_I = message("Shall I?", "assistant")
DO_IT = message("ok, do it")
DONE = message("Booked.", "assistant")
THANKS = message("Thanks!")
HISTORY = [SYSTEM, BOOK, SHALL_I, DO_IT]


def test_everything_goes_up_and_becomes_the_history_of_a_new_session() -> None:
    """Instructions and earlier turns included, and the body is not touched."""
    raw = json.dumps({"model": "m-a", "messages": HISTORY}).encode()
    new = elements(raw)
    assert [json.loads(text) for text in new] == HISTORY
    assert hydrated(envelope(raw), (), Fresh((), new)) == raw


def test_a_client_that_sends_the_whole_history_doubles_nothing() -> None:
    """Overlapping: with the instructions, without them, or with others."""
    whole = [*HISTORY, DONE, THANKS]
    assert conversation([*HISTORY, DONE], *whole) == whole
    assert conversation([*HISTORY, DONE], *whole[1:]) == whole
    other = message("Be kind.", "system")
    assert conversation([*HISTORY, DONE], other, *whole[1:]) == [other, *whole]


def test_a_client_that_sends_less_than_the_history_adds_to_it() -> None:
    """Shorter: its messages are new, also where the first ones look alike; its known instructions are not doubled."""
    assert conversation([*HISTORY, DONE], SYSTEM, THANKS) == [*HISTORY, DONE, THANKS]
    assert conversation([*HISTORY, DONE], SYSTEM, BOOK) == [*HISTORY, DONE, BOOK]
    assert conversation([*HISTORY, DONE], BOOK, SHALL_I, THANKS) == [*HISTORY, DONE, BOOK, SHALL_I, THANKS]


def test_a_client_with_another_history_loses_nothing_of_it() -> None:
    """Diverging: all of it is new, behind what is stored."""
    other = [BOOK, message("No.", "assistant"), DO_IT, DONE, THANKS]
    assert conversation([*HISTORY, DONE], *other) == [*HISTORY, DONE, *other]
