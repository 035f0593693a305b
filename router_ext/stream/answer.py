"""What an answer tells on its way through the router: its first token, its token counts, and how it ended.

Only answers that the router passes on itself are read here; those that Envoy passes on are read by Envoy.
"""

import re
from typing import Final

import orjson

from router_ext.model.outcome import StreamEnd, Usage
from router_ext.stream.sse import SseReader, holds_token
from router_ext.stream.words import COUNTS, usage_of

CARRY_BYTES: Final = 128
"""How much of a piece's end is looked at again with the next one: longer than any key with its number."""

_COUNT: Final = re.compile(rb'"([a-z_]{1,40}_tokens)"\s{0,8}:\s{0,8}(\d{1,15})(?!\d)')
# A quote inside a JSON string is escaped: a key or value in plain quotes is structure, never generated text.
_ERROR_SIGNS: Final = re.compile(rb'"error"|"response\.failed"')
_LAST: Final = re.compile(
    rb'"finish_reason"\s*:\s*"|"type"\s*:\s*"(?:response\.completed|response\.incomplete|message_stop)"'
)


class UsageReader:
    """The token counts of an answer in pieces, plain or streamed, whatever the API's words; the last one counts."""

    def __init__(self) -> None:
        self._carry = b""
        self._counts: dict[str, int] = {}

    def feed(self, piece: bytes) -> None:
        """Takes the next bytes."""
        text = self._carry + piece
        if b'_tokens"' in text:
            for key, digits in _COUNT.findall(text):
                field = COUNTS.get(key.decode())
                if field is not None:
                    self._counts[field] = int(digits)
        self._carry = text[-CARRY_BYTES:]

    @property
    def usage(self) -> Usage | None:
        """The counts so far, None before any was seen."""
        return usage_of(self._counts)


class StreamReader:
    """An event stream in pieces. ``end`` is UNKNOWN until it says that it is whole, or that it failed."""

    def __init__(self) -> None:
        self._events = SseReader()
        self._usage = UsageReader()
        self.has_token = False
        self.end = StreamEnd.UNKNOWN

    def feed(self, piece: bytes) -> list[bytes]:
        """Takes the next bytes; returns the data of the events that they complete."""
        self._usage.feed(piece)
        events = self._events.feed(piece)
        for data in events:
            self._take(data)
        return events

    def _take(self, data: bytes) -> None:
        if _ERROR_SIGNS.search(data) and _is_error(data):
            self.end = StreamEnd.ERROR
        elif self.end is not StreamEnd.ERROR and (data == b"[DONE]" or _LAST.search(data)):
            self.end = StreamEnd.WHOLE
        if not self.has_token:
            self.has_token = holds_token(data)

    @property
    def usage(self) -> Usage | None:
        """The counts so far, None before any was seen."""
        return self._usage.usage


def _is_error(data: bytes) -> bool:
    """True for an event that says that the answer failed, by an error, its type or a finish reason."""
    try:
        event = orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    if not isinstance(event, dict):
        return False
    choices = event.get("choices")
    listed = choices if isinstance(choices, list) else ()
    reasons = [choice.get("finish_reason") for choice in listed if isinstance(choice, dict)]
    return bool(event.get("error")) or event.get("type") in ("error", "response.failed") or "error" in reasons
