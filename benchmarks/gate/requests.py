"""Requests, their schemas and the answers to them."""

import json
from typing import Any, Final

from benchmarks.gate.stack import FALLBACK_MODEL
from benchmarks.sessions.texts import Writer
from benchmarks.sessions.wire import Answer
from router_ext.model.gate import Quality
from router_ext.model.headers import QUALITY, RESPONSE_SCHEMA
from tests.schemas.courts import ENDLESS

ITEM_BYTES: Final = 300
"""About what one item of an answer takes as JSON."""

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {"type": "integer", "minimum": 0},
                    "name": {"type": "string", "minLength": 1, "maxLength": 40},
                    "kind": {"enum": ["person", "place", "thing"]},
                    "note": {"type": "string"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["id", "name", "kind"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["items"],
}
"""What callers ask for: a list of records."""

MISFIT: Final = '{"items": "none"}'

PATTERN: Final[dict[str, Any]] = {"type": "string", "pattern": "^(a+)+$"}
BOMB: Final = ENDLESS
"""Schemas of callers that mean harm: one backtracks without end, the other branches without end in 4 KB."""

VICTIM: Final = json.dumps("a" * 40 + "!")
"""An answer on which both do their worst."""


class WrongAnswerError(Exception):
    """The gate did something else than what is measured."""


def fitting(size: int) -> str:
    """A text that fits ``SCHEMA``, of ``size`` characters or up to ``ITEM_BYTES`` more."""
    writer, items = Writer(), list[dict[str, Any]]()
    while len(text := json.dumps({"items": items})) < size:
        items.append(
            {"id": len(items), "name": writer.text(20), "kind": "thing", "note": writer.text(180), "tags": ["a", "b"]}
        )
    return text


def chat(model: str = "sim", *, stream: bool = False) -> bytes:
    """A chat request of about 1 KB."""
    messages = [{"role": "user", "content": Writer().text(900)}]
    return json.dumps({"model": model, "messages": messages, "stream": stream}, separators=(",", ":")).encode()


def wanted(schema: Any) -> tuple[str, str]:
    """The header that asks for an answer that fits."""
    return RESPONSE_SCHEMA, json.dumps(schema, separators=(",", ":"))


ALONE: Final = chat(FALLBACK_MODEL)
"""A request that goes to the fallback itself, and is not gated."""


def check(answer: Answer, quality: Quality | None) -> Answer:
    """The answer, if the gate said this of it; None: nothing. Raises WrongAnswerError."""
    said = answer.headers.get(QUALITY)
    if said != quality:
        raise WrongAnswerError(f"quality {said} instead of {quality}")
    return answer
