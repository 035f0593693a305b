"""An incremental reader of server-sent events (WHATWG HTML, section 9.2), on bytes."""

from typing import Final

import orjson

MAX_LINE_BYTES: Final = 1 << 20
"""Longest line, and longest data of one event, that is read; longer ones are skipped. Bounds the memory of a stream."""


class SseReader:
    """Yields the ``data`` of each event. Linear in the bytes fed, whatever the chunking.

    Lines end at LF, CR or CRLF only. ``skipped_lines`` counts lines over the limit, and those with which the data of
    their event goes over it; such an event is left out.
    """

    def __init__(self, max_line: int = MAX_LINE_BYTES) -> None:
        self._max_line = max_line
        self._line: list[bytes] = []
        self._line_size = 0
        self._data: list[bytes] = []
        self._data_size = 0
        self._after_cr = False
        self.skipped_lines = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Takes the next bytes; returns the data of the events that they complete, in order."""
        if not chunk:
            return []
        if self._after_cr:
            chunk = chunk.removeprefix(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        *complete, rest = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events: list[bytes] = []
        for piece in complete:
            self._keep(piece)
            self._end_line(events)
        self._keep(rest)
        return events

    def _keep(self, piece: bytes) -> None:
        self._line_size += len(piece)
        if piece and self._line_size <= self._max_line:
            self._line.append(piece)

    def _end_line(self, events: list[bytes]) -> None:
        line, size = b"".join(self._line), self._line_size
        self._line, self._line_size = [], 0
        if size == 0:
            if self._data and self._data_size <= self._max_line:
                events.append(b"\n".join(self._data))
            self._data, self._data_size = [], 0
        elif size > self._max_line or line.startswith(b"data:"):
            self._add_data(line, size)

    def _add_data(self, line: bytes, size: int) -> None:
        self._data_size += size
        if self._data_size > self._max_line:
            self.skipped_lines += 1
        else:
            self._data.append(line[5:].removeprefix(b" "))


class WholeEvents:
    """Cuts a stream at the ends of events: what is given on never ends within one."""

    def __init__(self, max_event: int = MAX_LINE_BYTES) -> None:
        self._max_event = max_event
        self._held: list[bytes] = []
        self._size = 0
        self._tail = b""

    def feed(self, piece: bytes) -> bytes:
        """Takes the next bytes; returns those up to the end of the last whole event. One that is too large to hold is
        given on as it comes.
        """
        looked_at = self._tail + piece
        end = max(looked_at.rfind(blank) + len(blank) if blank in looked_at else 0 for blank in _BLANK_LINES)
        at = end - len(self._tail) if end else 0
        if end and at >= 0:
            return self._release(piece[:at], piece[at:])
        self._hold(piece)
        return self._release(b"", b"") if self._size > self._max_event else b""

    @property
    def rest(self) -> bytes:
        """The event that has begun and not ended."""
        return b"".join(self._held)

    def _release(self, last: bytes, rest: bytes) -> bytes:
        ready = b"".join((*self._held, last))
        self._held, self._size, self._tail = [], 0, b""
        self._hold(rest)
        return ready

    def _hold(self, piece: bytes) -> None:
        self._held.append(piece)
        self._size += len(piece)
        self._tail = (self._tail + piece)[-3:]


_BLANK_LINES: Final = (b"\n\n", b"\n\r\n", b"\r\r")

_TEXT_FIELDS: Final = ("content", "reasoning", "reasoning_content", "refusal", "text")
_BLOCK_FIELDS: Final = ("text", "thinking", "partial_json")


def holds_token(data: bytes) -> bool:
    """True when an event carries generated output: content, reasoning, a refusal or a piece of a tool call.

    A role with empty or null content is no token. Covers the chat and completions APIs (``choices``), the responses API
    (``*.delta`` events) and the messages API (``content_block_delta``).
    """
    try:
        event = orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    if not isinstance(event, dict):
        return False
    choices = event.get("choices")
    if isinstance(choices, list):
        return any(_choice_holds_token(choice) for choice in choices if isinstance(choice, dict))
    delta = event.get("delta")
    if isinstance(delta, dict):
        return any(delta.get(key) for key in _BLOCK_FIELDS)
    return str(event.get("type", "")).endswith("delta") and bool(delta)


def _choice_holds_token(choice: dict[str, object]) -> bool:
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return bool(choice.get("text"))
    return bool(delta.get("tool_calls") or delta.get("function_call")) or any(delta.get(key) for key in _TEXT_FIELDS)
