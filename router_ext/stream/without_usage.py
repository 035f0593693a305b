"""A stream without the event that reports its usage, for a client that did not ask for one."""

import re
from typing import Final

import orjson

from router_ext.stream.sse import SseReader, WholeEvents

_BLANK_LINE: Final = re.compile(rb"\n\n|\n\r\n|\r\r")
"""The end of an event, as ``WholeEvents`` knows it."""

_LINE_ENDS: Final = b"\r\n"


class WithoutUsage:
    """Takes the usage events of the chat and completions APIs out of a stream: those with a ``usage`` and an empty list
    of choices. Every other byte stays, wherever the stream is cut, and goes on once its event is whole.
    """

    def __init__(self) -> None:
        self._events = WholeEvents()

    def feed(self, piece: bytes, *, end: bool = False) -> bytes:
        """Takes the next bytes, the last ones with ``end``; returns those that may go on. Of JSON that breaks off with
        the stream nothing goes on: it may be the beginning of a usage event, and no client can read it.
        """
        ready = _without(self._events.feed(piece))
        return ready + _last(self._events.rest) if end else ready


def _without(events: bytes) -> bytes:
    """Whole events, each with its blank line."""
    if b'"usage"' not in events:
        return events
    kept: list[bytes] = []
    at = 0
    for blank in _BLANK_LINE.finditer(events):
        kept.append(_kept(events[at : blank.end()]))
        at = blank.end()
    return b"".join((*kept, events[at:]))


def _kept(event: bytes) -> bytes:
    """All of an event, or the line ends before one that reports usage: they belong to the one before it."""
    if not any(_is_usage(data) for data in SseReader().feed(event)):
        return event
    return event[: len(event) - len(event.lstrip(_LINE_ENDS))]


def _last(rest: bytes) -> bytes:
    """What is left of an event without its blank line."""
    return b"" if any(_is_usage(data) or _is_torn(data) for data in SseReader().feed(rest + b"\n\n")) else rest


def _is_usage(data: bytes) -> bool:
    if b'"usage"' not in data:
        return False
    event = _read(data)
    if not isinstance(event, dict) or "choices" not in event or event["choices"] or event.get("error"):
        return False
    return isinstance(event.get("usage"), dict)


def _is_torn(data: bytes) -> bool:
    return data.startswith(b"{") and _read(data) is None


def _read(data: bytes) -> object:
    """None for what is no JSON."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
