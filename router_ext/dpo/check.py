"""Is this line a pair? What is wrong is said without a word of what the line holds."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, TypeGuard

import orjson

from router_ext.dpo.pair import ASSISTANT, KEYS, OPTIONAL_FIELDS, Message, Pair

_REQUIRED: Final = ("role", "content")
_FIELDS: Final = (*_REQUIRED, *OPTIONAL_FIELDS)


class _FaultError(Exception):
    pass


def read_line(line: bytes) -> Pair | str:
    """The pair of a line, or what is wrong with the line. ``line`` has its newline."""
    try:
        return _pair(_object(line))
    except _FaultError as fault:
        return str(fault)


def _object(line: bytes) -> Mapping[str, object]:
    if not line.endswith(b"\n"):
        raise _FaultError("the line has no end: it is torn, or still being written")
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _FaultError("not valid JSON in UTF-8") from error
    if not isinstance(fields, dict):
        raise _FaultError("not a JSON object")
    if tuple(fields) != KEYS:
        raise _FaultError(_wrong_keys(fields))
    return fields


def _wrong_keys(fields: Mapping[str, object]) -> str:
    for name in KEYS:
        if name not in fields:
            return f"the key '{name}' is missing"
    return "a key too many" if len(fields) > len(KEYS) else "the keys are in another order"


def _pair(fields: Mapping[str, object]) -> Pair:
    prompt = fields["prompt"]
    if not isinstance(prompt, list) or not prompt:
        raise _FaultError("'prompt' is not a list of one or more messages")
    for number, message in enumerate(prompt, 1):
        _check_message(message, f"message {number} of 'prompt'")
    if prompt[-1]["role"] == ASSISTANT:
        raise _FaultError("the last message of 'prompt' is the assistant's already")
    texts = {name: _text(fields, name) for name in KEYS if name not in ("prompt", "timestamp")}
    return Pair(prompt=tuple(prompt), timestamp=_seconds(_text(fields, "timestamp")), **texts)


def _check_message(message: object, place: str) -> None:
    if not _is_message(message):
        raise _FaultError(f"{place} is not an object of {', '.join(_FIELDS)} with text in each field")
    if not message["role"]:
        raise _FaultError(f"{place} has no role")
    if "tool_calls" in message and calls_of(message) is None:
        raise _FaultError(f"'tool_calls' of {place} is not a list of objects in JSON")


def _is_message(message: object) -> TypeGuard[Message]:
    """Fields in their order, none of another name, and each a text."""
    if not isinstance(message, dict) or any(name not in message for name in _REQUIRED):
        return False
    in_order = tuple(name for name in _FIELDS if name in message)
    return tuple(message) == in_order and all(isinstance(text, str) for text in message.values())


def calls_of(message: Message) -> list[dict[str, object]] | None:
    """The tool calls of a message; None when its ``tool_calls`` are something else."""
    try:
        calls = orjson.loads(message["tool_calls"])
    except orjson.JSONDecodeError:
        return None
    return calls if isinstance(calls, list) and all(isinstance(call, dict) for call in calls) else None


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields[name]
    if not isinstance(value, str):
        raise _FaultError(f"'{name}' is not a text")
    return value


def _seconds(timestamp: str) -> float:
    try:
        time = datetime.fromisoformat(timestamp) if timestamp.endswith("Z") and "T" in timestamp else None
    except ValueError:
        time = None
    if time is None:
        raise _FaultError("'timestamp' is not a time like 2026-01-31T23:59:59.123Z")
    return time.timestamp()
