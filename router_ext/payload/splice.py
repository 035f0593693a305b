"""Edits of single bytes ranges: every other byte of a body stays as the client sent it."""

from collections.abc import Iterable

import orjson
from msgspec import Struct

from router_ext.payload.envelope import Envelope


class Edit(Struct, frozen=True):
    """Replaces ``raw[start:end]`` by ``text``; an insertion when both are equal."""

    start: int
    end: int
    text: bytes


def spliced(raw: bytes, edits: Iterable[Edit]) -> bytes:
    """Applies edits that do not overlap, in any order."""
    pieces: list[bytes] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        pieces += (raw[at : edit.start], edit.text)
        at = edit.end
    return b"".join((*pieces, raw[at:]))


def set_field(envelope: Envelope, name: str, value: object) -> Edit:
    """The edit that gives a top-level field a JSON value: in its place, or first in the object when it is missing."""
    text = orjson.dumps(value)
    span = envelope.spans.get(name)
    if span is not None:
        return Edit(span.start, span.end, text)
    opening = envelope.raw.index(b"{") + 1
    separator = b"," if envelope.spans else b""
    return Edit(opening, opening, orjson.dumps(name) + b":" + text + separator)
