"""The words of an answer: a function of the prompt and the seed, one word piece a token."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

DEFAULT_TOKENS = 16
SHORTEST_NATURAL = 64
_NATURAL_SPREAD = 192
_MASK = (1 << 64) - 1
_PIECE = re.compile(r"\w+|\s+\w*|[^\w\s]+", re.ASCII)
_WORD_TEXT = """
harbour lantern river copper meadow signal granite willow cabin north anchor velvet orchard canyon marble thunder
cedar island summit paper quiet silver morning bridge garden winter forest ocean candle window mirror feather
bright gentle rapid steady hollow ancient simple golden broken hidden narrow open warm distant early late
carries follows gathers opens remembers builds answers crosses keeps turns holds measures finds leaves reads calls
"""
WORDS = tuple(_WORD_TEXT.split())


@dataclass(frozen=True, slots=True)
class Answer:
    """Text in word pieces. ``finish`` is OpenAI's reason: stop or length."""

    pieces: tuple[str, ...]
    finish: str

    @property
    def text(self) -> str:
        """All pieces in order."""
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class Limit:
    """How long an answer may get. ``asked`` None: the client set no limit; ``room``: what the context still holds.

    With ``exact`` (vLLM's ``ignore_eos``) the answer has as many tokens as asked for, whatever its natural end is.
    """

    asked: int | None
    room: int
    exact: bool = False

    @property
    def tokens(self) -> int:
        """The largest number of tokens, at least 1."""
        asked = DEFAULT_TOKENS if self.asked is None else self.asked
        return max(1, min(asked, self.room))


def mix(value: int, salt: int) -> int:
    """64 well-stirred bits of two numbers, the same in every process (SplitMix64)."""
    z = (value + 0x9E3779B97F4A7C15 * (salt + 1)) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def word(bits: int) -> str:
    """One of the 64 words."""
    return WORDS[bits % len(WORDS)]


def prose(bits: int, limit: Limit) -> Answer:
    """Words up to the limit.

    Without a limit the answer ends by itself after 16 tokens. With one it is cut there (``length``), unless its natural
    end of 64 to 255 tokens comes first (``stop``): a limit below 64 gives exactly that many tokens.
    """
    natural = DEFAULT_TOKENS if limit.asked is None else SHORTEST_NATURAL + mix(bits, 0) % _NATURAL_SPREAD
    count = limit.tokens if limit.exact else min(natural, limit.tokens)
    ends = count == natural and not limit.exact
    return Answer(tuple(_words(bits, count, ends)), "stop" if ends else "length")


def quoted(text: str, limit: Limit) -> Answer:
    """This very text, cut only by a limit that the client asked for."""
    pieces = tuple(split_pieces(text))
    if limit.asked is None or len(pieces) <= limit.tokens:
        return Answer(pieces, "stop")
    return Answer(pieces[: limit.tokens], "length")


def split_pieces(text: str) -> list[str]:
    """Word pieces that join to the same text."""
    return _PIECE.findall(text)


def _words(bits: int, count: int, ends: bool) -> Iterator[str]:
    for index in range(count):
        piece = word(mix(bits, index + 1))
        piece = f" {piece}" if index else piece.capitalize()
        yield f"{piece}." if ends and index == count - 1 else piece
