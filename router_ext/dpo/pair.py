"""A preference pair, and the line of JSON that it is in a file.

Each field of a line has one type in all lines, since loaders with fixed types refuse anything else: texts are strings,
also those that clients send as a list of parts, and tool calls are a string of JSON.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

import orjson

from router_ext.dpo.redact import redacted
from router_ext.model.rejection import Rejection
from router_ext.payload.envelope import read_envelope

Message = Mapping[str, str]
"""``role`` and ``content`` always; ``name``, ``tool_calls`` (JSON: a list of calls as the API has them) and
``tool_call_id`` where the message has them. In this order.
"""

OPTIONAL_FIELDS: Final = ("name", "tool_calls", "tool_call_id")
"""Fields of a message that may be missing."""

ASSISTANT: Final = "assistant"

_TEXT_PARTS: Final = frozenset({"text", "input_text", "output_text"})
_MEDIA_PARTS: Final = frozenset(
    {
        "audio",
        "audio_url",
        "document",
        "file",
        "image",
        "image_url",
        "input_audio",
        "input_file",
        "input_image",
        "video",
        "video_url",
    }
)
_DATA_URL: Final = re.compile(r"data:(?:image|audio|video)/[a-z0-9.+-]{1,64};base64,", re.IGNORECASE)

_LINE_ENDS: Final = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))
"""Characters that end a line for some readers, JSON escapes none of them: U+2028, U+2029, U+0085."""


class Unfit(StrEnum):
    """Why a request is no prompt of a pair: it has images or sound, its last message is an assistant's already, or its
    messages are not those of the chat completions API.
    """

    MEDIA = "media"
    LAST_ROLE = "last_role"
    MALFORMED = "malformed"


class _UnfitError(Exception):
    def __init__(self, reason: Unfit) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Pair:
    """An answer that was good enough, and one that was not, to the same messages.

    ``prompt`` has at least one message, the last of which is not an assistant's. ``timestamp`` is seconds since the
    epoch. ``reason`` says what was wrong with ``rejected``, ``rule`` is the routing rule.
    """

    prompt: tuple[Message, ...]
    chosen: str
    rejected: str
    timestamp: float
    cheap_backend: str
    expensive_backend: str
    reason: str
    rule: str


KEYS: Final = tuple(Pair.__dataclass_fields__)
"""The keys of a line, all of them in each line and in this order."""


def messages_of(array: bytes) -> tuple[Message, ...] | Unfit:
    """The messages of a chat request out of the bytes of its ``messages``, in the one form that ``prompt_of`` gives."""
    envelope = read_envelope(b'{"messages":' + array + b"}")
    if isinstance(envelope, Rejection):
        return Unfit.MALFORMED
    return prompt_of(envelope.fields.get("messages"))


def prompt_of(messages: object) -> tuple[Message, ...] | Unfit:
    """The same out of the decoded ``messages``.

    Parts of text are joined by a line end, as vLLM and llama.cpp do; content that is null is "", or the refusal of the
    message. A legacy ``function_call`` is a tool call. Fields that are none of a ``Message`` are left out.
    """
    if not isinstance(messages, list) or not messages:
        return Unfit.MALFORMED
    try:
        prompt = tuple(_message(message) for message in messages)
    except _UnfitError as unfit:
        return unfit.reason
    return Unfit.LAST_ROLE if prompt[-1]["role"] == ASSISTANT else prompt


def _message(message: object) -> Message:
    if not isinstance(message, dict) or not _string(message, "role"):
        raise _UnfitError(Unfit.MALFORMED)
    if message.get("audio"):
        raise _UnfitError(Unfit.MEDIA)
    read = {
        "role": _string(message, "role"),
        "content": _content(message.get("content")) or _string(message, "refusal"),
        "name": _string(message, "name"),
        "tool_calls": _calls(message),
        "tool_call_id": _string(message, "tool_call_id"),
    }
    if any(_DATA_URL.search(text) for text in read.values()):
        raise _UnfitError(Unfit.MEDIA)
    return {name: text for name, text in read.items() if text or name not in OPTIONAL_FIELDS}


def _string(message: dict[str, object], name: str) -> str:
    """A field that is text; "" when it is missing or null."""
    value = message.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _UnfitError(Unfit.MALFORMED)
    return value


def _content(content: object) -> str:
    match content:
        case None:
            return ""
        case str():
            return content
        case list():
            return "\n".join(_part(part) for part in content)
        case _:
            raise _UnfitError(Unfit.MALFORMED)


def _part(part: object) -> str:
    match part:
        case str():
            return part
        case {"type": "refusal", "refusal": str(text)}:
            return text
        case {"type": str(kind), "text": str(text)} if kind in _TEXT_PARTS:
            return text
        case {"type": str(kind)} if kind in _MEDIA_PARTS:
            raise _UnfitError(Unfit.MEDIA)
        case _:
            raise _UnfitError(Unfit.MALFORMED)


def _calls(message: dict[str, object]) -> str:
    """JSON of the tool calls; "" when there are none."""
    function = message.get("function_call")
    calls = message.get("tool_calls") or ([{"type": "function", "function": function}] if function else [])
    if not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls):
        raise _UnfitError(Unfit.MALFORMED)
    try:
        return orjson.dumps(calls).decode() if calls else ""
    except TypeError as error:
        # Deeper than the 254 levels that orjson writes.
        raise _UnfitError(Unfit.MALFORMED) from error


def redacted_pair(pair: Pair) -> Pair:
    """The pair with every text of prompt and answers ``redacted``."""
    prompt = tuple({name: redacted(text) for name, text in message.items()} for message in pair.prompt)
    return replace(pair, prompt=prompt, chosen=redacted(pair.chosen), rejected=redacted(pair.rejected))


def line_of(pair: Pair) -> bytes:
    """The line of a pair in UTF-8, without a line end: ``KEYS`` in their order, the timestamp as RFC 3339 in UTC with
    milliseconds.
    """
    fields: dict[str, object] = {name: getattr(pair, name) for name in KEYS}
    return json_line(fields | {"timestamp": written_time(pair.timestamp)})


def json_line(fields: Mapping[str, object]) -> bytes:
    """JSON that no reader of lines takes for more than one. Halves of characters become U+FFFD."""
    try:
        line = orjson.dumps(fields)
    except TypeError:
        line = orjson.dumps(_well_formed(fields))
    for character, escape in _LINE_ENDS:
        line = line.replace(character, escape)
    return line


def written_time(seconds: float) -> str:
    """Seconds since the epoch as RFC 3339 in UTC with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _well_formed(value: object) -> object:
    """Joins the halves of characters that were cut in two, and replaces those without a fellow."""
    match value:
        case str():
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        case Mapping():
            return {name: _well_formed(item) for name, item in value.items()}
        case list() | tuple():
            return [_well_formed(item) for item in value]
        case _:
            return value
