"""JSON from an admin page, walked without surprises: what is missing, or of another kind, is simply empty."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_DURATION: Final = re.compile(r"(-?\d{1,12}(?:\.\d{1,9})?)s")
_WHOLE: Final = re.compile(r"-?\d{1,20}")
_SHOWN_CHARACTERS: Final = 200
MAX_LEVELS: Final = 100
"""How deep two places are compared."""


def printable(text: str) -> str:
    """At most 200 characters of ``text`` without control characters, which could play tricks on a terminal."""
    return "".join(character for character in text[:_SHOWN_CHARACTERS] if character.isprintable())


@dataclass(frozen=True, slots=True)
class Node:
    """One place in a JSON document. ``value`` None means that nothing is there."""

    value: object = None

    def at(self, *keys: str) -> "Node":
        """The place below, by the keys of objects."""
        value = self.value
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return Node(value)

    def each(self) -> "Iterator[Node]":
        """The elements of a list; none for anything else."""
        if isinstance(self.value, list):
            yield from map(Node, self.value)

    def entries(self) -> "Iterator[tuple[str, Node]]":
        """The entries of an object; none for anything else."""
        if isinstance(self.value, dict):
            yield from ((str(key), Node(value)) for key, value in self.value.items())

    @property
    def exists(self) -> bool:
        """True when something is there."""
        return self.value is not None

    @property
    def text(self) -> str:
        """The text, fit to be shown; "" for anything else."""
        return printable(self.value) if isinstance(self.value, str) else ""

    @property
    def flag(self) -> bool:
        """True for ``true`` only."""
        return self.value is True

    def whole(self, default: int = 0) -> int:
        """The whole number, which protobuf writes as text when it has 64 bits; ``default`` for anything else."""
        if isinstance(self.value, int) and not isinstance(self.value, bool):
            return self.value
        fits = isinstance(self.value, str) and _WHOLE.fullmatch(self.value)
        return int(str(self.value)) if fits else default

    def seconds(self, default: float = 0.0) -> float:
        """The seconds of a duration as protobuf writes it, ``1.500s``; ``default`` for anything else."""
        match = _DURATION.fullmatch(self.value) if isinstance(self.value, str) else None
        return float(match[1]) if match else default

    def is_type(self, name: str) -> bool:
        """True when the object's ``@type`` is the message ``name``, with its package."""
        return self.at("@type").value == f"type.googleapis.com/{name}"

    def same_as(self, other: "Node") -> bool:
        """True when both say the same, however durations and numbers of 64 bits are written."""
        return _plain(self.value) == _plain(other.value)


def _plain(value: object, levels: int = MAX_LEVELS) -> object:
    """Equal for what says the same; what is nested deeper than any of Envoy's messages counts as nothing."""
    if levels == 0:
        return None
    if isinstance(value, dict):
        return {key: _plain(below, levels - 1) for key, below in value.items()}
    if isinstance(value, list):
        return [_plain(below, levels - 1) for below in value]
    if isinstance(value, str):
        match = _DURATION.fullmatch(value)
        return float(match[1]) if match else (int(value) if _WHOLE.fullmatch(value) else value)
    return value
