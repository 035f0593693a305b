"""An incremental reader of server-sent events (WHATWG HTML, section 9.2), on bytes."""

from typing import Final

import orjson

MAX_LINE_BYTES: Final = 1 << 20
"""Longest line that is read; the rest of a longer one is skipped. Bounds the memory of one stream."""


class SseReader:
    """Yields the ``data`` of each event. Linear in the bytes fed, whatever the chunking.

    Lines end at LF, CR or CRLF only. ``skipped_lines`` counts lines over the limit.
    """

    def __init__(self, max_line: int = MAX_LINE_BYTES) -> None:
        self._max_line = max_line
        self._line: list[bytes] = []
        self._line_size = 0
        self._data: list[bytes] = []
        self._after_cr = False
        self.skipped_lines = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Takes the next bytes; returns the data of the events that they complete, in order."""
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        if not chunk:
            return []
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
        if size > self._max_line:
            self.skipped_lines += 1
        elif not line:
            if self._data:
                events.append(b"\n".join(self._data))
            self._data = []
        elif line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))


_TEXT_FIELDS: Final = ("content", "reasoning", "reasoning_content", "refusal", "text")


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
    return str(event.get("type", "")).endswith("delta") and bool(event.get("delta"))


def _choice_holds_token(choice: dict[str, object]) -> bool:
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return bool(choice.get("text"))
    return bool(delta.get("tool_calls") or delta.get("function_call")) or any(delta.get(key) for key in _TEXT_FIELDS)
