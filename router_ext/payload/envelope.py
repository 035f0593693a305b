"""The top level of a JSON body: decoded fields, and where each value stands in the bytes.

Spans let a field be replaced without serialising the rest again. They come from msgspec's zero-copy raw values, which
also exposes repeated keys: a gateway and an engine that read different occurrences would disagree about the request.
"""

import re
from dataclasses import dataclass
from typing import Final

import msgspec
import orjson

from router_ext.model.rejection import Reason, Rejection

MAX_DEPTH: Final = 1024
"""Deepest nesting of arrays and objects that is accepted: orjson's fixed limit, independent of the Python version."""

UNIQUE_FIELDS: Final = frozenset(
    {
        "cache_salt",
        "input",
        "max_completion_tokens",
        "max_tokens",
        "messages",
        "model",
        "n",
        "prompt",
        "response_format",
        "stream",
        "stream_options",
        "tools",
        "user",
    }
)
"""Fields that routing, budgets or the engine act on: they may stand at the top level once."""

_RAW_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_KEY: Final = re.compile(rb'[ \t\n\r]*"((?:[^"\\]++|\\.)*+)"[ \t\n\r]*:[ \t\n\r]*', re.DOTALL)
_NEXT: Final = re.compile(rb"[ \t\n\r]*([,}])")
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\],]', re.DOTALL)
_SURROGATE: Final = re.compile(
    rb"(\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)


@dataclass(frozen=True, slots=True)
class Span:
    """A value's place: ``raw[start:end]``, without surrounding white space."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Envelope:
    """A body that is a JSON object.

    ``fields`` holds the decoded top level; lone surrogates, which Python text cannot carry, read as U+FFFD there.
    ``spans`` has the place of each value in ``raw``, for a repeated key that of the last one.
    """

    raw: bytes
    fields: dict[str, object]
    spans: dict[str, Span]


def read_envelope(raw: bytes) -> Envelope | Rejection:
    """Reads a body. Refuses what is not JSON (RFC 8259, UTF-8), not an object, nested deeper than ``MAX_DEPTH``, or
    repeats one of ``UNIQUE_FIELDS`` (compared after unescaping).
    """
    fields = _decode(raw)
    if isinstance(fields, Rejection):
        return fields
    places = _places(raw) or _places_by_scan(raw)
    spans: dict[str, Span] = {}
    for key, span in places:
        if key in spans and key in UNIQUE_FIELDS:
            return Rejection(Reason.DUPLICATE_FIELD, f"The field '{key}' stands in the body more than once.", key)
        spans[key] = span
    return Envelope(raw, fields, spans)


def _decode(raw: bytes) -> dict[str, object] | Rejection:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        value = _decode_with_surrogates(raw, error)
    if isinstance(value, Rejection):
        return value
    if not isinstance(value, dict):
        return Rejection(Reason.INVALID_JSON, "The body must be a JSON object.")
    return value


def _decode_with_surrogates(raw: bytes, error: orjson.JSONDecodeError) -> object:
    """Engines accept escaped lone surrogates, which orjson does not: read them as U+FFFD, an escape of equal length."""
    if b"\\ud" in raw or b"\\uD" in raw:
        try:
            return orjson.loads(_without_lone_surrogates(raw))
        except orjson.JSONDecodeError as again:
            error = again
    if "recursion" in error.msg.lower():
        return Rejection(Reason.INVALID_JSON, f"The body is nested deeper than {MAX_DEPTH} levels.")
    return Rejection(Reason.INVALID_JSON, f"The body is not valid JSON (byte {error.pos}).")


def _places(raw: bytes) -> list[tuple[str, Span]] | None:
    """Walks from key to key by the lengths that msgspec found; None where that cannot be trusted."""
    try:
        values = _RAW_FIELDS.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    places: list[tuple[str, Span]] = []
    at = raw.index(b"{") + 1
    while key := _KEY.match(raw, at):
        name = _unescape(key[1])
        value = memoryview(values[name])
        start, at = key.end(), key.end() + len(value)
        following = _NEXT.match(raw, at)
        # A repeated key whose values differ: the length is that of another occurrence.
        if following is None or not raw.startswith(value, start):
            return None
        places.append((name, Span(start, at)))
        at = following.end()
    return places


def _places_by_scan(raw: bytes) -> list[tuple[str, Span]]:
    """The same for any valid object, token by token: slower, without recursion."""
    places: list[tuple[str, Span]] = []
    depth = 0
    key: re.Match[bytes] | None = None
    for token in _TOKEN.finditer(raw):
        mark = token[0][:1]
        if depth == 1 and mark in b",}" and key is not None:
            places.append((_unescape(key[1]), _trimmed(raw, key.end(), token.start())))
            key = None
        if depth == 1 and mark == b'"' and key is None:
            key = _KEY.match(raw, token.start())
        depth += (mark in b"{[") - (mark in b"}]")
    return places


def _trimmed(raw: bytes, start: int, end: int) -> Span:
    return Span(start, start + len(raw[start:end].rstrip(b" \t\n\r")))


def _unescape(key: bytes) -> str:
    if b"\\" not in key:
        return key.decode()
    return str(orjson.loads(b'"' + _without_lone_surrogates(key) + b'"'))


def _without_lone_surrogates(raw: bytes) -> bytes:
    return _SURROGATE.sub(lambda found: found[1] or b"\\ufffd", raw)
