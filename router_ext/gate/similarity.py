"""How alike two texts are, by their words and their lengths. Linear in their lengths."""

import re
from typing import Final

_WORD: Final = re.compile(r"\w+")


def similarity(one: str, other: str) -> float:
    """The share (0..1) of words that both texts have among those that any has: the Jaccard index of their sets.

    A word is a run of letters, digits and underscores (``\\w`` of Unicode) in lower case; how often it comes and where
    says nothing. Two texts without any word are the same: 1.0.
    """
    mine, others = words(one), words(other)
    either = len(mine | others)
    return len(mine & others) / either if either else 1.0


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    # One by one: other threads get their turn between two calls of the engine of patterns.
    return frozenset(found[0] for found in _WORD.finditer(text.lower()))


def length_ratio(one: str, other: str) -> float | None:
    """The length of ``other`` over that of ``one``, in characters: 1.0 where both are empty, None where only ``one``
    is.
    """
    if not one:
        return None if other else 1.0
    return len(other) / len(one)
