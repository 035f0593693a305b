"""A prompt as a chain of prefixes: what an engine's cache may already hold of it."""

from msgspec import Struct


class Boundary(Struct, frozen=True):
    """One place where a prompt may be cut. ``key`` identifies everything before it, from the prompt's start on; equal
    keys mean equal prefixes. ``size`` is the size of that prefix, in the unit of ``Prompt.size``.
    """

    key: bytes
    size: int


class Prompt(Struct, frozen=True):
    """A prompt's boundaries, shortest prefix first, and its whole size (≥ the last boundary's), in bytes of text.

    An empty chain means that nothing of the prompt can be shared.
    """

    boundaries: tuple[Boundary, ...] = ()
    size: int = 0
