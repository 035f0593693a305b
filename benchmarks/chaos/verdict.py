"""Whether an answer is good: complete, and with all of its words."""

import json
from collections.abc import Sequence
from typing import Any, Final

from benchmarks.chaos.traffic import TOKENS

_DONE: Final = "[DONE]"


def fault_of_plain(body: bytes) -> str | None:
    """What is wrong with the body of a ``chat.completion``, None when it is good."""
    try:
        answer = json.loads(body)
        choice = answer["choices"][0]
        text, finish = choice["message"]["content"], choice["finish_reason"]
    except (ValueError, LookupError, TypeError):
        return "no chat completion"
    return _fault_of_text(text, finish)


def fault_of_stream(body: bytes) -> str | None:
    """What is wrong with the events of a streamed ``chat.completion``, None when they are good."""
    events = [_data(event) for event in body.decode(errors="replace").split("\n\n") if event.strip()]
    try:
        chunks = [json.loads(data) for data in events if data != _DONE]
    except ValueError:
        return "broken event"
    if not all(isinstance(chunk, dict) for chunk in chunks):
        return "broken event"
    errors = [chunk["error"] for chunk in chunks if "error" in chunk]
    if errors:
        return f"error event {_code(errors[0])}"
    if events[-1:] != [_DONE] or not body.endswith(b"\n\n"):
        return "no [DONE]"
    return _fault_of_chunks([choice for chunk in chunks for choice in chunk.get("choices", ())])


def _data(event: str) -> str:
    lines = (line.removeprefix("data:") for line in event.splitlines() if line.startswith("data:"))
    return "\n".join(lines).strip()


def _code(error: Any) -> str:
    return str(error.get("code") or error.get("type")) if isinstance(error, dict) else str(error)


def _fault_of_chunks(choices: Sequence[Any]) -> str | None:
    text = "".join(choice["delta"].get("content") or "" for choice in choices)
    finish = next((choice["finish_reason"] for choice in choices if choice["finish_reason"]), None)
    return _fault_of_text(text, finish)


def _fault_of_text(text: str, finish: str | None) -> str | None:
    if not finish:
        return "no finish_reason"
    words = len(text.split())
    return None if words == TOKENS else f"{words} words instead of {TOKENS}"
