"""The messages of a chat request as single pieces of JSON, and how they join a stored conversation.

The one rule of a turn: its leading instructions (system and developer messages) count for this turn only and go in
front of what is stored; everything after them is new and goes behind it. What is stored already is not sent twice:
neither instructions that the stored conversation begins with, nor a repetition of that whole conversation, with or
without its instructions. A shorter or another history is new messages.
"""

import re
from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec
import orjson
from msgspec import Struct

from router_ext.model.rejection import Reason, Rejection
from router_ext.payload.envelope import Envelope, Span, read_envelope
from router_ext.payload.prompt_turn import NotSerialisableError, canonical
from router_ext.payload.splice import Edit, spliced

MAX_MESSAGES: Final = 10_000
"""Most messages of one request: each costs memory of its own, however short it is."""

INSTRUCTION_ROLES: Final = frozenset({"system", "developer"})

_ANSWER_FIELDS: Final = ("role", "name", "content", "tool_calls", "function_call", "refusal")
"""What counts when a client sends an answer back: clients add fields of the answer that are not stored."""

_NOTHING: Final[tuple[object, ...]] = (None, "", [], {})
_GAP: Final = re.compile(rb"[ \t\n\r]*[\[,][ \t\n\r]*")

_Value = TypeVar("_Value")


class _Head(Struct):
    role: object = None


_ELEMENTS: Final = msgspec.json.Decoder(list[msgspec.Raw])
_HEAD: Final = msgspec.json.Decoder(_Head)


class Fresh(Struct, frozen=True):
    """What a turn brings: ``instructions`` for this turn alone, and ``new`` messages, which are stored once they are
    answered.
    """

    instructions: tuple[bytes, ...]
    new: tuple[bytes, ...]


def read_messages(envelope: Envelope) -> tuple[bytes, ...] | Rejection:
    """The messages of a chat request, each exactly as the client wrote it, without white space around it.

    At least one. Refuses a body without messages, with others than objects, with more than ``MAX_MESSAGES``, and some
    that nest nearly as deeply as an envelope may.
    """
    messages = envelope.fields.get("messages")
    if not (isinstance(messages, list) and messages and all(isinstance(message, dict) for message in messages)):
        return _invalid("The field 'messages' must be an array of one or more objects.")
    if len(messages) > MAX_MESSAGES:
        return _invalid(f"The field 'messages' must hold at most {MAX_MESSAGES} messages.")
    span = envelope.spans["messages"]
    text = envelope.raw[span.start : span.end]
    elements = _read(_ELEMENTS, text)
    if elements is None:
        return _invalid("The field 'messages' nests too deeply for a session.")
    return _cut(text, elements)


def fresh_messages(messages: Sequence[bytes], stored: Sequence[bytes]) -> Fresh | Rejection:
    """What a turn adds to the stored conversation, by the rule above. Refuses a turn without a new message.

    Messages are the same when they are the same JSON: white space, key order and empty fields do not count, nor do
    fields of an answer that are not stored.
    """
    leading, kept = _leading(messages), _leading(stored)
    instructions, turns = tuple(messages[:leading]), tuple(messages[leading:])
    if _begins_with(stored, instructions):
        instructions = ()
    conversation = stored[kept:]
    new = turns[len(conversation) :] if _begins_with(turns, conversation) else turns
    if not new:
        return _invalid("The request adds no message to the session.")
    return Fresh(instructions, new)


def hydrated(envelope: Envelope, stored: Sequence[bytes], fresh: Fresh) -> bytes:
    """The body with the stored messages between the turn's instructions and its new messages.

    ``envelope`` is the one that ``fresh`` was read from. No message is changed or cut, and every byte outside of the
    array stays; without stored messages the body is as it came.
    """
    if not stored:
        return envelope.raw
    span = envelope.spans["messages"]
    whole = b",".join((*fresh.instructions, *stored, *fresh.new))
    return spliced(envelope.raw, [Edit(span.start, span.end, b"[" + whole + b"]")])


def hydrated_envelope(envelope: Envelope, stored: Sequence[bytes], fresh: Fresh) -> Envelope | Rejection:
    """The envelope of the ``hydrated`` body, without reading again what was read before: only the messages are decoded.

    Refuses what ``read_envelope`` refuses.
    """
    raw = hydrated(envelope, stored, fresh)
    span = envelope.spans["messages"]
    grown = len(raw) - len(envelope.raw)
    array = raw[span.start : span.end + grown]
    try:
        messages = orjson.loads(array)
    except orjson.JSONDecodeError:
        # Lone surrogates, which only the whole reader knows how to take.
        return read_envelope(raw)
    spans = {
        name: Span(place.start + grown, place.end + grown) if place.start >= span.end else place
        for name, place in envelope.spans.items()
    }
    spans["messages"] = Span(span.start, span.end + grown)
    return Envelope(raw, {**envelope.fields, "messages": messages}, spans)


def _invalid(message: str) -> Rejection:
    return Rejection(Reason.INVALID_MESSAGES, message, "messages")


def _cut(text: bytes, elements: Sequence[msgspec.Raw]) -> tuple[bytes, ...]:
    """The elements of the array ``text`` by their lengths."""
    pieces: list[bytes] = []
    end = 0
    for element in elements:
        gap = _GAP.match(text, end)
        start = gap.end() if gap else end
        end = start + len(element)
        pieces.append(text[start:end])
    return tuple(pieces)


def _read(decoder: "msgspec.json.Decoder[_Value]", text: bytes) -> _Value | None:
    """Decodes valid JSON, None when it nests too deeply."""
    try:
        return decoder.decode(text)
    except msgspec.DecodeError:
        text = _without_surrogates(text)
    except RecursionError:
        return None
    try:
        return decoder.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _without_surrogates(text: bytes) -> bytes:
    """JSON with each value in its place, but other characters: msgspec refuses lone surrogates, which engines accept.

    Without escaped backslashes every ``\\u`` that is left begins an escape.
    """
    return text.replace(rb"\\", b"xx").replace(rb"\ud", rb"\u0").replace(rb"\uD", rb"\u0")


def _leading(messages: Sequence[bytes]) -> int:
    """How many instructions stand before anything else."""
    return next((at for at, message in enumerate(messages) if not _instructs(message)), len(messages))


def _instructs(message: bytes) -> bool:
    head = _read(_HEAD, message)
    return head is not None and isinstance(head.role, str) and head.role in INSTRUCTION_ROLES


def _begins_with(messages: Sequence[bytes], start: Sequence[bytes]) -> bool:
    """Looks at no message when there are too few, and at none after the first that differs."""
    if len(messages) < len(start):
        return False
    return all(_same(left, right) for left, right in zip(messages, start, strict=False))


def _same(left: bytes, right: bytes) -> bool:
    if left == right:
        return True
    meaning = _meaning(left)
    return meaning is not None and meaning == _meaning(right)


def _meaning(message: bytes) -> bytes | None:
    """What two messages are compared by; None for one with lone surrogates or deep nesting, which must be the same
    bytes.
    """
    try:
        fields = orjson.loads(message)
        names = _ANSWER_FIELDS if fields.get("role") == "assistant" else fields
        return canonical({name: fields[name] for name in names if fields.get(name) not in _NOTHING})
    except (orjson.JSONDecodeError, NotSerialisableError):
        return None
