"""TRL's conversational preference format with an explicit prompt.

Loaders take the types of a whole file from its first megabytes. So every message has all the fields that any message of
the file has, null where it has none, and the first line with a field comes before all lines without it.
"""

from collections.abc import Sequence

import orjson

from router_ext.dpo.check import calls_of
from router_ext.dpo.pair import ASSISTANT, OPTIONAL_FIELDS, Message, Pair, json_line


def optional_fields(pair: Pair) -> frozenset[str]:
    """The ``OPTIONAL_FIELDS`` that messages of the prompt have."""
    return frozenset(name for message in pair.prompt for name in OPTIONAL_FIELDS if name in message)


def trl_line(pair: Pair, fields: Sequence[str]) -> bytes:
    """The line of a pair without a line end. ``fields`` are the ``optional_fields`` of the whole file.

    Tool calls are a list, as chat templates need them; their arguments stay JSON as a text.
    """
    return json_line(
        {
            "prompt": [_message(message, fields) for message in pair.prompt],
            "chosen": [{"role": ASSISTANT, "content": pair.chosen}],
            "rejected": [{"role": ASSISTANT, "content": pair.rejected}],
        }
    )


def _message(message: Message, fields: Sequence[str]) -> dict[str, object]:
    written: dict[str, object] = {"role": message["role"], "content": message["content"]}
    for name in fields:
        written[name] = _calls(message) if name == "tool_calls" else message.get(name)
    return written


def _calls(message: Message) -> list[dict[str, object]] | None:
    if "tool_calls" not in message:
        return None
    return [_call(call) for call in calls_of(message) or ()]


def _call(call: dict[str, object]) -> dict[str, object]:
    """One form for functions and for custom tools, all of it text."""
    body = call.get("function") or call.get("custom")
    body = body if isinstance(body, dict) else {}
    arguments = body.get("arguments", body.get("input", ""))
    return {
        "id": _text(call.get("id")),
        "type": "function",
        "function": {"name": _text(body.get("name")), "arguments": _text(arguments)},
    }


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
