"""The message that an answer of the chat completions API adds to its conversation.

Kept are the fields that the API takes back: role, content, refusal and calls, and an assistant's reasoning only beside
tool calls, where engines ask for it. The plain and the streamed form of one answer give the same message.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
import orjson
from msgspec import Struct

from router_ext.payload.prompt_turn import NotSerialisableError, as_utf8, canonical

MAX_MESSAGE_BYTES: Final = 32 << 20
"""Most that is held of one streamed message."""

ENTRY_BYTES: Final = 512
"""What a tool call, or a field of one, counts beside its text: about what its objects take."""

_KEPT: Final = ("role", "content", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call")
_REASONING: Final = ("reasoning_content", "reasoning")
_TEXTS: Final = ("content", "refusal", *_REASONING)
_BODIES: Final = ("function", "custom")
_GROWING: Final = ("arguments", "input")
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
    """None for what is no completion. msgspec refuses lone surrogates, which are read as U+FFFD then."""
    try:
        return _COMPLETION.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        return _COMPLETION.decode(_well_formed(json.dumps(json.loads(body), ensure_ascii=False)))
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
    return _object((name, kept[name]) for name in names)


def _object(fields: Iterable[tuple[str, bytes]]) -> bytes:
    return b"{" + b",".join(orjson.dumps(name) + b":" + text for name, text in fields) + b"}"


class StreamedMessage:
    """Merges the events of a streamed answer into the message of choice 0. Linear in the bytes that are fed.

    ``finished`` says that a finish reason came. ``overflown``: more than ``limit`` bytes came, and nothing is kept.
    """

    def __init__(self, limit: int = MAX_MESSAGE_BYTES) -> None:
        self._limit = limit
        self._size = 0
        self._role = ""
        self._texts = _Texts()
        self._calls = _Calls()
        self._function = _Texts()
        self.finished = False
        self.overflown = False

    def feed(self, data: bytes) -> None:
        """Takes the data of the next event. What is no chunk of a chat completion says nothing."""
        event = _event(data)
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
            self._texts, self._calls, self._function = _Texts(), _Calls(), _Texts()

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
            fields["role"] = orjson.dumps(_well_formed(self._role))
        if function := self._function.fields():
            function.setdefault("arguments", b'""')
            fields["function_call"] = _object(function.items())
        return _message(fields)


class _Texts:
    """Texts by name, which grow piece by piece. Each method returns how many bytes it added."""

    __slots__ = ("_texts",)

    def __init__(self) -> None:
        self._texts: dict[str, bytearray] = {}

    def extend(self, name: str, piece: object) -> int:
        """Appends a piece; what is no text adds nothing."""
        if not isinstance(piece, str):
            return 0
        text = as_utf8(piece)
        self._texts.setdefault(name, bytearray()).extend(text)
        return len(text)

    def begin(self, name: str, text: object) -> int:
        """Sets a text that comes once, whatever later pieces repeat."""
        return 0 if self._texts.get(name) else self.extend(name, text)

    def extend_body(self, body: dict[str, object]) -> int:
        """Takes the pieces of a function's call. Some engines repeat its name in every chunk, some cut it."""
        name = body.get("name")
        repeated = isinstance(name, str) and self._texts.get("name") == bytearray(as_utf8(name))
        added = 0 if repeated else self.extend("name", name)
        return added + sum(self.extend(growing, body.get(growing)) for growing in _GROWING)

    def fields(self) -> dict[str, bytes]:
        """Each text as JSON."""
        return {name: _json_text(text) for name, text in self._texts.items()}


class _Call:
    """One tool call. Unknown fields are kept with their last value: some providers want theirs back."""

    __slots__ = ("_bodies", "_others", "_texts")

    def __init__(self) -> None:
        self._texts = _Texts()
        self._bodies: dict[str, _Texts] = {}
        self._others: dict[str, bytes] = {}

    def add(self, entry: dict[str, object]) -> int:
        added = self._texts.begin("id", entry.get("id")) + self._texts.begin("type", entry.get("type"))
        for name, value in entry.items():
            if name in _BODIES and isinstance(value, dict):
                added += self._bodies.setdefault(name, _Texts()).extend_body(value)
            elif name not in ("id", "type", "index", *_BODIES) and value is not None:
                added += self._keep(name, value)
        return added

    def _keep(self, name: str, value: object) -> int:
        try:
            canonical(name)
            text = canonical(value, in_order=True)
        except NotSerialisableError:
            return 0
        self._others[name] = text
        return len(as_utf8(name)) + len(text) + ENTRY_BYTES

    def json(self) -> bytes:
        fields = {name: text for name, text in self._texts.fields().items() if text != b'""'}
        bodies = {name: body.fields() for name, body in self._bodies.items()}
        if "function" in bodies:
            bodies["function"].setdefault("arguments", b'""')
        called = {name: _object(body.items()) for name, body in bodies.items()}
        kind = {"type": fields.get("type", b'"function"')}
        return _object((fields | kind | called | self._others).items())


class _Calls:
    """The tool calls of a message by their index, which is that of the engine, never the place in a chunk."""

    __slots__ = ("_calls", "_last", "_next", "_places")

    def __init__(self) -> None:
        self._calls: dict[int, _Call] = {}
        self._places: dict[str, int] = {}
        self._last = 0
        self._next = 0

    def add(self, entry: dict[str, object]) -> int:
        """Takes a piece of a call; returns how many bytes it added."""
        known = len(self._places) + len(self._calls)
        self._last = self._place(entry)
        self._next = max(self._next, self._last + 1)
        added = self._calls.setdefault(self._last, _Call()).add(entry)
        return added + ENTRY_BYTES * (len(self._places) + len(self._calls) - known)

    def _place(self, entry: dict[str, object]) -> int:
        """By the index; without one by the id, and without both the call before goes on."""
        index, call_id = entry.get("index"), entry.get("id")
        if not (isinstance(call_id, str) and call_id):
            return index if isinstance(index, int) else self._last
        place = index if isinstance(index, int) else self._places.get(call_id, self._next)
        self._places[call_id] = place
        return place

    def array(self) -> bytes:
        """The calls in the order of their indexes, as JSON."""
        return b"[" + b",".join(call.json() for _, call in sorted(self._calls.items())) + b"]"


def _event(data: bytes) -> object:
    """An event's JSON, None for anything else. orjson refuses lone surrogates, which come where an engine cuts a
    character in two.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        if b"\\u" not in data:
            return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _json_text(text: bytearray) -> bytes:
    try:
        return orjson.dumps(text.decode())
    except UnicodeDecodeError:
        return orjson.dumps(_well_formed(text.decode("utf-8", "surrogatepass")))


def _well_formed(text: str) -> str:
    """Joins the halves of characters that were cut in two, and replaces those without a fellow by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
