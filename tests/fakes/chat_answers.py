"""Chat completions in both forms, and the messages that are kept of them."""

import json
from typing import Any

from router_ext.payload.answer_message import MAX_MESSAGE_BYTES, StreamedMessage, plain_message


def completion(message: object, finish: object = "stop", **choice: object) -> bytes:
    """A plain answer with one choice."""
    return json.dumps({"choices": [{"index": 0, "finish_reason": finish, "message": message, **choice}]}).encode()


def kept(body: bytes) -> Any:
    """What is kept of a plain answer, decoded; None for nothing."""
    message = plain_message(body)
    return None if message is None else json.loads(message)


def chunk(delta: object, finish: object = None, **choice: object) -> bytes:
    """The data of an event."""
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish, **choice}]}).encode()


def streamed(*events: bytes, limit: int = MAX_MESSAGE_BYTES) -> StreamedMessage:
    """A message that was fed these events."""
    message = StreamedMessage(limit)
    for event in events:
        message.feed(event)
    return message


def merged(*deltas: object) -> Any:
    """What is kept of a stream with these deltas, which then stops."""
    message = streamed(*(chunk(delta) for delta in deltas), chunk({}, "stop")).message()
    assert message is not None
    return json.loads(message)


def call(index: int | None = None, **fields: object) -> dict[str, object]:
    """A delta with one piece of a tool call."""
    place = {} if index is None else {"index": index}
    return {"tool_calls": [{**place, **fields}]}
