"""Which texts of an answer must be JSON, and fit the schema of the request."""

from collections.abc import Mapping

import orjson

from router_ext.gate.checks import is_withheld
from router_ext.gate.text import json_text
from router_ext.model.gate import AnswerChoice, ReadAnswer, SchemaText
from router_ext.payload.prompt_turn import NotSerialisableError, canonical


def texts_to_judge(answer: ReadAnswer, schema: SchemaText | None, tools: Mapping[str, object]) -> tuple[str, ...]:
    """The texts that must be JSON, and fit the schema if there is one. Without any there is nothing to judge.

    The ``json_text`` of each choice. Of a choice that calls tools, only the arguments of those whose parameters are the
    schema, as a JSON value; ``tools`` has the parameters by name. A choice that the engine withheld is no broken JSON,
    so it is left out.
    """
    called = any(choice.tool_calls for choice in answer.choices)
    judged = _tools_of(schema, tools) if called and schema else frozenset[str]()
    return tuple(text for choice in answer.choices for text in _texts(choice, judged))


def _texts(choice: AnswerChoice, judged: frozenset[str]) -> list[str]:
    if choice.tool_calls:
        return [call.arguments for call in choice.tool_calls if call.name in judged]
    return [] if is_withheld(choice) else [json_text(choice.text or "")]


def _tools_of(schema: SchemaText, tools: Mapping[str, object]) -> frozenset[str]:
    """Names of the tools whose parameters are the schema: key order and white space do not count."""
    try:
        wanted = canonical(orjson.loads(schema.text))
    except (orjson.JSONDecodeError, NotSerialisableError):
        return frozenset()
    return frozenset(name for name, parameters in tools.items() if _is(parameters, wanted))


def _is(parameters: object, wanted: bytes) -> bool:
    try:
        return canonical(parameters) == wanted
    except NotSerialisableError:
        return False
