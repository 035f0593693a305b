"""What two variants said to one request, side by side."""

import asyncio
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from router_ext.engine.exchanges import KeptRequest
from router_ext.engine.held import read_body
from router_ext.gate.judged import texts_to_judge
from router_ext.gate.similarity import length_ratio, similarity
from router_ext.gate.text import after_thinking
from router_ext.model.backend import Backend
from router_ext.model.gate import AnswerChoice, ReadAnswer, SchemaText, SchemaVerdict
from router_ext.model.money import cost_micro_usd
from router_ext.model.outcome import Usage
from router_ext.model.shadow import VariantAnswer
from router_ext.payload.schema_request import requested_schema, requested_tools
from router_ext.ports import SchemaJudge

MAX_COMPARED: Final = 1_000_000
"""As much of a text, in characters, as is looked at for its words: a thread works on it for about half a second."""


class Side(Struct, frozen=True):
    """The answer of one variant as it came. ``usage`` is None where the engine did not count."""

    backend: Backend
    body: bytes
    took_s: float
    usage: Usage | None


class Compared(Struct, frozen=True):
    """Both answers as they read, and how alike they are. See ``model.shadow.Comparison``."""

    a: VariantAnswer
    b: VariantAnswer
    similarity: float
    length_ratio: float | None


class _Read(Struct, frozen=True):
    answers: tuple[ReadAnswer, ReadAnswer]
    compared: Compared


async def compared(kept: KeptRequest, a: Side, b: Side, judge: SchemaJudge) -> Compared | None:
    """Both answers side by side, None where one of them is no completion."""
    # Long answers take their time: in a thread no caller waits for it.
    read = await asyncio.to_thread(_read, a, b)
    if read is None:
        return None
    schema = requested_schema(kept.head.headers, kept.body.envelope)
    if not isinstance(schema, SchemaText) or judge.refuses(schema):
        return read.compared
    tools = requested_tools(kept.body.envelope)
    first, second = [await _fits(judge, schema, texts_to_judge(answer, schema, tools)) for answer in read.answers]
    both = read.compared
    return replace(both, a=replace(both.a, valid=first), b=replace(both.b, valid=second))


def _read(a: Side, b: Side) -> _Read | None:
    first, second = read_body(a.body), read_body(b.body)
    if first is None or second is None:
        return None
    one, other = _text(first), _text(second)
    alike = similarity(one[:MAX_COMPARED], other[:MAX_COMPARED])
    return _Read((first, second), Compared(_variant(a, one), _variant(b, other), alike, length_ratio(one, other)))


def _variant(side: Side, text: str) -> VariantAnswer:
    known = side.usage is not None and side.backend.is_priced
    cost = cost_micro_usd(side.backend, side.usage) if known and side.usage is not None else None
    return VariantAnswer(side.backend.name, text, side.took_s, side.usage, cost)


def _text(answer: ReadAnswer) -> str:
    """What an answer says, each choice in its own lines: without its reasoning, with the calls that it makes."""
    return "\n".join(line for choice in answer.choices for line in _lines(choice) if line)


def _lines(choice: AnswerChoice) -> list[str]:
    calls = [f"{call.name} {call.arguments}" for call in choice.tool_calls]
    return [(after_thinking(choice.text or "") or "").strip(), choice.refusal, *calls]


async def _fits(judge: SchemaJudge, schema: SchemaText, texts: tuple[str, ...]) -> bool | None:
    """None where there is nothing to judge, or the schema cannot be used."""
    for text in texts:
        verdict = await judge.judge(schema, text)
        if verdict is SchemaVerdict.BAD_SCHEMA:
            return None
        if verdict is not SchemaVerdict.VALID:
            return False
    return True if texts else None
