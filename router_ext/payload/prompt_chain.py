"""The chain of keys of a prompt: every link takes in the key before it, so a key stands for all of its prefix.

A link is SHA-256 over the previous key (16 bytes), a tag (2 bytes) and one piece of the prompt, cut to 16 bytes. The
fixed lengths in front frame the piece, and the tags tell what it is, so no two different prompts give one key by the
way their fields are put together. Nothing is seeded: replicas agree on keys. On CPUs with SHA instructions SHA-256 is
faster than BLAKE2b, and in blocks of 2 KiB as fast as BLAKE3 (``python -m benchmarks.prefix``).
"""

from hashlib import sha256
from typing import Final

from router_ext.model.prefix import Boundary

BLOCK: Final = 2048
"""Bytes of text between two boundaries inside a text; also the size below which a prefix may be too short to share."""

MAX_BOUNDARIES: Final = 1024
"""Most boundaries of one prompt, so that one request cannot push everything else out of a table. A longer chain keeps
its first and its last half: the beginning that others share, and the end that the next turn repeats.
"""

START: Final = bytes(16)
"""The key of nothing."""


class Chain:
    """Builds a chain from links and texts, in the prompt's order.

    ``key`` stands for everything so far, ``size`` is its length in bytes of text, ``boundaries`` are the places that
    may be shared, shortest first, with growing sizes. ``begun`` is true after the first turn that is no system prompt:
    from then on short prefixes are boundaries too.
    """

    __slots__ = ("begun", "boundaries", "key", "size")

    def __init__(
        self, key: bytes = START, size: int = 0, boundaries: tuple[Boundary, ...] = (), *, begun: bool = False
    ) -> None:
        self.key = key
        self.size = size
        self.boundaries = [*boundaries]
        self.begun = begun

    def link(self, tag: bytes, piece: bytes, size: int) -> None:
        """Adds one piece that counts as ``size`` bytes of text. ``tag`` has two bytes."""
        self.key = sha256(self.key + tag + piece).digest()[:16]
        self.size += size

    def text(self, kind: bytes, head: bytes, text: bytes) -> None:
        """Adds a text with a boundary after each whole block of it, counted from its own start.

        ``kind`` (one byte) says what begins here. ``head`` must end by itself, as JSON does; it counts no bytes.
        """
        whole = len(text) - len(text) % BLOCK
        for start in range(0, whole, BLOCK):
            self.link(kind + b"+", head + text[start : start + BLOCK], BLOCK)
            self.mark()
            kind, head = b"b", b""
        self.link(kind + b".", head + text[whole:], len(text) - whole)

    def mark(self) -> None:
        """Makes this place a boundary, unless the prefix is only a short system prompt or grew by no text."""
        last = self.boundaries[-1].size if self.boundaries else 0
        if self.size > last and (self.begun or self.size >= BLOCK):
            self.boundaries.append(Boundary(self.key, self.size))

    def kept(self) -> tuple[Boundary, ...]:
        """The boundaries, thinned to ``MAX_BOUNDARIES``."""
        half = MAX_BOUNDARIES // 2
        if len(self.boundaries) <= MAX_BOUNDARIES:
            return tuple(self.boundaries)
        return (*self.boundaries[:half], *self.boundaries[-half:])
