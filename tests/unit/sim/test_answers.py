"""The words of the simulated engine."""

import pytest

from router_ext.demo.sim.answers import Limit, prose, quoted, split_pieces


@pytest.mark.parametrize("asked", [1, 16, 63])
def test_a_limit_below_64_gives_exactly_that_many_tokens(asked: int) -> None:
    """Every natural answer is longer."""
    answer = prose(7, Limit(asked, room=1000))
    assert (len(answer.pieces), answer.finish) == (asked, "length")


def test_without_a_limit_an_answer_ends_by_itself_after_16_tokens() -> None:
    """With a full stop."""
    answer = prose(7, Limit(None, room=1000))
    assert (len(answer.pieces), answer.finish, answer.text[-1]) == (16, "stop", ".")


def test_a_long_answer_ends_by_itself_between_64_and_255_tokens() -> None:
    """Unless the client wants its exact number."""
    lengths = {len(prose(bits, Limit(4096, room=10_000)).pieces) for bits in range(500)}
    assert min(lengths) >= 64
    assert max(lengths) <= 255
    assert len(prose(7, Limit(4096, room=10_000, exact=True)).pieces) == 4096


def test_the_room_left_in_the_context_limits_an_answer() -> None:
    """And at least one token is written."""
    assert len(prose(7, Limit(50, room=5)).pieces) == 5
    assert len(prose(7, Limit(50, room=0)).pieces) == 1


def test_a_quoted_text_is_cut_by_a_limit_that_was_asked_for_only() -> None:
    """Structured answers stay whole without a limit."""
    text = '{"city":"river","population":1}'
    assert quoted(text, Limit(None, room=1)).text == text
    cut = quoted(text, Limit(2, room=100))
    assert (cut.text, cut.finish) == ('{"city', "length")


@pytest.mark.parametrize("text", ['{"a":"b c"}', "two words", "  spaced\n\nout ", "ünïcode text", ""])
def test_pieces_join_to_the_text(text: str) -> None:
    """Nothing is lost between tokens."""
    assert "".join(split_pieces(text)) == text
