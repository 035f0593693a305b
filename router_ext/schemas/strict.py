"""JSON texts read as RFC 8259 has them, and no two readers may disagree on what they mean."""

import json
from typing import Final, NoReturn

UNREADABLE: Final = (ValueError, RecursionError)
"""What ``parse`` raises. RecursionError: the text is nested more deeply than the recursion limit of the interpreter."""


def parse(text: bytes) -> object:
    """The one JSON value of ``text``, with white space around it at most.

    Raises one of ``UNREADABLE`` for everything else: bytes that are not UTF-8, a byte order mark, NaN and Infinity, a
    key that an object has twice, half a surrogate pair, and numbers of more than 4,300 digits (a limit of Python).
    """
    decoded = text.decode()
    value: object = _DECODER.decode(decoded)
    # Only an escape can bring half a pair; others need not be looked for.
    if "\\ud" in decoded or "\\uD" in decoded:
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key twice")
    return members


def _refuse(_: str) -> NoReturn:
    raise ValueError("NaN or Infinity")


_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_refuse)
