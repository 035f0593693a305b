"""The top level of a JSON body: decoded fields, and where each value stands in the bytes.

Spans let a field be replaced without serialising the rest again. They come from msgspec's zero-copy raw values, which
also exposes repeated keys: a gateway and an engine that read different occurrences would disagree about the request.
"""

import re
from typing import Final

import msgspec
import orjson
from msgspec import Struct

from router_ext.model.rejection import Reason, Rejection

MAX_DEPTH: Final = 1024
"""Deepest nesting of arrays and objects that is accepted: orjson's fixed limit, independent of the Python version."""

MAX_SCANNED: Final = 100_000
"""Most tokens of an odd body (repeated fields of different values, hundreds of levels) that are walked one by one.
That many take about 0.1 s, during which nothing else is served.
"""

UNIQUE_FIELDS: Final = frozenset(
    {
        "best_of",
        "cache_salt",
        "input",
        "max_completion_tokens",
        "max_output_tokens",
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

_DEPTH_WORDS: Final = ("depth", "recursion")
"""orjson says "depth limit exceeded", its releases before 3.11.5 "Recursion limit reached"."""

_RAW_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_KEY: Final = re.compile(rb'[ \t\n\r]*"((?:[^"\\]++|\\.)*+)"[ \t\n\r]*:[ \t\n\r]*', re.DOTALL)
_NEXT: Final = re.compile(rb"[ \t\n\r]*([,}])")
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\],]', re.DOTALL)
_SURROGATE: Final = re.compile(
    rb"((?:[^\\]++|\\[^u]|\\u(?![dD][89a-fA-F])|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})++)"
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
"""Either a run of text without lone surrogates, as long as possible (group 1), or the escape of one."""


class Span(Struct, frozen=True):
    """A value's place: ``raw[start:end]``, without surrounding white space."""

    start: int
    end: int


class Envelope(Struct, frozen=True):
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
    decoded = _decode(raw)
    if isinstance(decoded, Rejection):
        return decoded
    text, fields = decoded
    places = _places(text)
    if places is None:
        places = _places_by_scan(text)
    if places is None:
        return Rejection(Reason.INVALID_JSON, "The body repeats fields or nests too deeply for its size.")
    spans: dict[str, Span] = {}
    for key, span in places:
        if key in spans and key in UNIQUE_FIELDS:
            return Rejection(Reason.DUPLICATE_FIELD, f"The field '{key}' stands in the body more than once.", key)
        spans[key] = span
    return Envelope(raw, fields, spans)


def _decode(raw: bytes) -> tuple[bytes, dict[str, object]] | Rejection:
    """The body and its top level. The body is ``raw``, or a text of the same length without lone surrogates: engines
    accept their escapes, which orjson does not.
    """
    text = raw
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        if b"\\ud" not in raw and b"\\uD" not in raw:
            return _not_json(error)
        text = _without_lone_surrogates(raw)
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError as again:
            return _not_json(again)
    if not isinstance(value, dict):
        return Rejection(Reason.INVALID_JSON, "The body must be a JSON object.")
    return text, value


def _not_json(error: orjson.JSONDecodeError) -> Rejection:
    if any(word in error.msg.lower() for word in _DEPTH_WORDS):
        return Rejection(Reason.INVALID_JSON, f"The body is nested deeper than {MAX_DEPTH} levels.")
    return Rejection(Reason.INVALID_JSON, f"The body is not valid JSON (byte {error.pos}).")


def _places(raw: bytes) -> list[tuple[str, Span]] | None:
    """By the lengths that msgspec found; None where that cannot be trusted."""
    try:
        values = _RAW_FIELDS.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    return _places_without_gaps(raw, values) or _places_by_walk(raw, values)


def _places_without_gaps(raw: bytes, values: dict[str, msgspec.Raw]) -> list[tuple[str, Span]] | None:
    """Adds the lengths up, which needs no look at the text: a body that is exactly as long as its keys, its values and
    the marks between them has neither white space, nor escaped keys, nor a repeated key. Most clients write such.
    """
    places: list[tuple[str, Span]] = []
    at = 1
    for name, value in values.items():
        start = at + len(name.encode()) + 3
        at = start + len(value) + 1
        places.append((name, Span(start, at - 1)))
    return places if at == len(raw) else None


def _places_by_walk(raw: bytes, values: dict[str, msgspec.Raw]) -> list[tuple[str, Span]] | None:
    """Walks from key to key."""
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


def _places_by_scan(raw: bytes) -> list[tuple[str, Span]] | None:
    """The same for any valid object, token by token: slower, without recursion. None after ``MAX_SCANNED`` tokens."""
    places: list[tuple[str, Span]] = []
    depth = 0
    key: re.Match[bytes] | None = None
    for count, token in enumerate(_TOKEN.finditer(raw)):
        if count == MAX_SCANNED:
            return None
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
    return str(orjson.loads(b'"' + key + b'"'))


def _without_lone_surrogates(raw: bytes) -> bytes:
    return _SURROGATE.sub(lambda found: found[1] or b"\\ufffd", raw)
