"""The message that an answer of the chat completions API adds to its conversation.

Kept are the fields that the API takes back: role, content, refusal and calls, and an assistant's reasoning only beside
tool calls, where engines ask for it. The plain and the streamed form of one answer give the same message.
"""

import json
import re
from collections.abc import Mapping
from typing import Final

import msgspec
import orjson
from msgspec import Struct

from router_ext.payload.answer_pieces import Calls, Texts, json_object, read_json, well_formed

MAX_MESSAGE_BYTES: Final = 32 << 20
"""Most that is held of one streamed message."""

_KEPT: Final = ("role", "content", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call")
_REASONING: Final = ("reasoning_content", "reasoning")
_TEXTS: Final = ("content", "refusal", *_REASONING)
_EMPTY: Final = re.compile(rb'null|""|\[\s*\]|\{\s*\}')


class _Choice(Struct):
    index: object = 0
    finish_reason: object = None
    message: dict[str, msgspec.Raw] | None = None


class _Completion(Struct):
    choices: list[_Choice] | None = None


_COMPLETION: Final = msgspec.json.Decoder(_Completion)


def plain_message(body: bytes) -> bytes | None:
    """The message of an answer that came as one JSON object: that of choice 0, or of the first choice.

    Values stay as the engine wrote them. None when the body is no such answer, or an incomplete one: without a finish
    reason, or with the reason ``error``.
    """
    completion = _completion(body)
    choices = completion.choices if completion else None
    choice = next((choice for choice in choices or () if choice.index == 0), choices[0] if choices else None)
    if choice is None or choice.message is None or not _finishes(choice.finish_reason):
        return None
    message = _message({name: bytes(value) for name, value in choice.message.items()})
    return message if _is_json(message) else None


def _completion(body: bytes) -> _Completion | None:
    """None for what is no completion. msgspec refuses what ``read_json`` takes: lone surrogates, which are U+FFFD
    then, and numbers that are none, which are null.
    """
    try:
        return _COMPLETION.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return _COMPLETION.decode(well_formed(json.dumps(read_json(body), ensure_ascii=False)))
    except (ValueError, RecursionError):
        return None


def _is_json(message: bytes) -> bool:
    """msgspec does not look into raw values: what is no UTF-8, say, would spoil every later turn."""
    try:
        orjson.loads(message)
    except orjson.JSONDecodeError:
        return False
    return True


def _finishes(reason: object) -> bool:
    return isinstance(reason, str) and reason not in ("", "error")


def _message(fields: Mapping[str, bytes]) -> bytes:
    """A message out of the JSON of its fields. An empty field is left out, but for content, which may be null."""
    given = {name: text for name, text in fields.items() if name == "content" or not _EMPTY.fullmatch(text)}
    kept = {"role": b'"assistant"', "content": b"null"} | given
    names = (name for name in _KEPT if name in kept and (name not in _REASONING or "tool_calls" in kept))
    return json_object((name, kept[name]) for name in names)


class StreamedMessage:
    """Merges the events of a streamed answer into the message of choice 0. Linear in the bytes that are fed.

    ``finished`` says that a finish reason came. ``overflown``: more than ``limit`` bytes came, and nothing is kept.
    """

    def __init__(self, limit: int = MAX_MESSAGE_BYTES) -> None:
        self._limit = limit
        self._size = 0
        self._role = ""
        self._texts = Texts()
        self._calls = Calls()
        self._function = Texts()
        self.finished = False
        self.overflown = False

    def feed(self, data: bytes) -> None:
        """Takes the data of the next event. What is no chunk of a chat completion says nothing."""
        event = read_json(data)
        choices = event.get("choices") if isinstance(event, dict) else None
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                self._take(choice)

    def _take(self, choice: dict[str, object]) -> None:
        self.finished = self.finished or _finishes(choice.get("finish_reason"))
        delta = choice.get("delta")
        if self.overflown or not isinstance(delta, dict):
            return
        self._size += self._merge(delta)
        if self._size > self._limit:
            self.overflown = True
            self._texts, self._calls, self._function = Texts(), Calls(), Texts()

    def _merge(self, delta: dict[str, object]) -> int:
        """Returns how many bytes it added."""
        added = 0
        for name, value in delta.items():
            if name in _TEXTS:
                added += self._texts.extend(name, value)
            elif name == "role" and isinstance(value, str):
                self._role = self._role or value
            elif name == "tool_calls" and isinstance(value, list):
                added += sum(self._calls.add(call) for call in value if isinstance(call, dict))
            elif name == "function_call" and isinstance(value, dict):
                added += self._function.extend_body(value)
        return added

    def message(self) -> bytes | None:
        """The message as JSON; None before it is finished, and when it is too large."""
        if not self.finished or self.overflown:
            return None
        fields = self._texts.fields() | {"tool_calls": self._calls.array()}
        if self._role:
            fields["role"] = orjson.dumps(well_formed(self._role))
        if function := self._function.fields():
            function.setdefault("arguments", b'""')
            fields["function_call"] = json_object(function.items())
        return _message(fields)
