"""How alike two texts are. Figures are counted by hand."""

import pytest

from router_ext.gate.similarity import length_ratio, similarity


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("the cat sat", "the cat sat", 1.0),
        ("the cat sat", "the dog sat", 2 / 4),
        ("the cat", "a dog", 0.0),
        ("one two three", "one", 1 / 3),
        ("", "", 1.0),
        ("", "one", 0.0),
        ("...", " !\n", 1.0),
    ],
)
def test_similarity_is_the_share_of_common_words(one: str, other: str, expected: float) -> None:
    """Words that both have over words that any has; texts without any word are the same."""
    assert similarity(one, other) == similarity(other, one) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("one", "other"),
    [("Yes, it IS.", "yes it is"), ("a a a b", "b a"), ("snake_case-word", "snake_case word"), ("ÄRGER", "ärger")],
)
def test_case_punctuation_order_and_repetition_say_nothing(one: str, other: str) -> None:
    """Words are runs of letters, digits and underscores."""
    assert similarity(one, other) == 1.0


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("abcd", "ab", 0.5), ("ab", "abc", 1.5), ("a", "", 0.0), ("", "", 1.0), ("", "a", None)],
)
def test_the_length_ratio_is_that_of_the_second_over_the_first(one: str, other: str, expected: float | None) -> None:
    """In characters; nothing can be said where only the first is empty."""
    assert length_ratio(one, other) == expected
