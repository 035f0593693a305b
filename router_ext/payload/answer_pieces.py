"""The parts of an answer that come in pieces, texts and calls, and how they are joined.

Plain and streamed answers, and all that reads them, share this: what was one text is one text again.
"""

import json
from collections.abc import Iterable
from typing import Final

import orjson

from router_ext.model.gate import ToolCall
from router_ext.payload.prompt_turn import NotSerialisableError, as_utf8, canonical

ENTRY_BYTES: Final = 512
"""What a tool call, or a field of one, counts beside its text: about what its objects take."""

_BODIES: Final = ("function", "custom")
_GROWING: Final = ("arguments", "input")


def read_json(data: bytes) -> object:
    """The JSON of an answer or an event, None for anything else.

    Read is also what engines write although it is no JSON: ``NaN`` and ``Infinity``, as null, and lone surrogates,
    which come where a character is cut in two.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(data, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None


def json_object(fields: Iterable[tuple[str, bytes]]) -> bytes:
    """An object out of the JSON of its fields."""
    return b"{" + b",".join(orjson.dumps(name) + b":" + text for name, text in fields) + b"}"


def well_formed(text: str) -> str:
    """Joins the halves of characters that were cut in two, and replaces those without a fellow by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class Texts:
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

    def text(self, name: str) -> str | None:
        """The text so far, without lone surrogates; None when no piece of it came."""
        text = self._texts.get(name)
        return None if text is None else _decoded(text)

    def called(self) -> ToolCall:
        """The call of a function whose body these texts are."""
        arguments = self.text("arguments") or self.text("input")
        return ToolCall(self.text("name") or "", arguments or "")

    def fields(self) -> dict[str, bytes]:
        """Each text as JSON."""
        return {name: orjson.dumps(_decoded(text)) for name, text in self._texts.items()}


class _Call:
    """One tool call. Unknown fields are kept with their last value: some providers want theirs back."""

    __slots__ = ("_bodies", "_others", "_texts")

    def __init__(self) -> None:
        self._texts = Texts()
        self._bodies: dict[str, Texts] = {}
        self._others: dict[str, bytes] = {}

    def add(self, entry: dict[str, object]) -> int:
        added = self._texts.begin("id", entry.get("id")) + self._texts.begin("type", entry.get("type"))
        for name, value in entry.items():
            if name in _BODIES and isinstance(value, dict):
                added += self._bodies.setdefault(name, Texts()).extend_body(value)
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

    def called(self) -> ToolCall:
        """What is called. A tool that is no function has an input in place of arguments."""
        body = self._bodies.get("function") or self._bodies.get("custom") or Texts()
        return body.called()

    def json(self) -> bytes:
        """The call as the API takes it back."""
        fields = {name: text for name, text in self._texts.fields().items() if text != b'""'}
        bodies = {name: body.fields() for name, body in self._bodies.items()}
        if "function" in bodies:
            bodies["function"].setdefault("arguments", b'""')
        called = {name: json_object(body.items()) for name, body in bodies.items()}
        kind = {"type": fields.get("type", b'"function"')}
        return json_object((fields | kind | called | self._others).items())


class Calls:
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

    def called(self) -> tuple[ToolCall, ...]:
        """What is called, in the order of the indexes."""
        return tuple(call.called() for _, call in sorted(self._calls.items()))

    def array(self) -> bytes:
        """The calls in the order of their indexes, as JSON."""
        return b"[" + b",".join(call.json() for _, call in sorted(self._calls.items())) + b"]"


def _decoded(text: bytearray) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return well_formed(text.decode("utf-8", "surrogatepass"))
