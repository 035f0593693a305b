"""Which texts of an answer must be JSON."""

import pytest

from router_ext.gate.judged import texts_to_judge
from router_ext.model.gate import SchemaText, ToolCall
from tests.fakes.read_answers import answered, said

SCHEMA = SchemaText(b'{"type": "object", "required": ["a"]}')
TOOLS: dict[str, object] = {
    "same": {"required": ["a"], "type": "object"},
    "other": {"type": "object"},
    "more": {"type": "object", "required": ["a"], "title": "x"},
}


def test_each_choice_is_judged_by_its_json() -> None:
    """Without what stands around it, and with or without a schema."""
    answer = answered("<think>x</think>[1]", "```json\n[2]\n```", "Here: [3]")
    for schema in (SCHEMA, None):
        assert texts_to_judge(answer, schema, TOOLS) == ("[1]", "\n[2]", "Here: [3]")


@pytest.mark.parametrize("text", [None, ""])
def test_no_text_is_judged_as_an_empty_one(text: str | None) -> None:
    """Which is no JSON."""
    assert texts_to_judge(answered(text), SCHEMA, TOOLS) == ("",)


def test_a_call_is_judged_when_the_schema_is_its_tools() -> None:
    """As a JSON value: the order of keys does not count. The text beside it is not judged."""
    answer = answered(said("I look.", ToolCall("same", '{"a":1}'), ToolCall("other", "x"), ToolCall("same", "")))
    assert texts_to_judge(answer, SCHEMA, TOOLS) == ('{"a":1}', "")


@pytest.mark.parametrize("name", ["other", "more", "unknown", ""])
def test_other_calls_are_skipped(name: str) -> None:
    """So that nothing is left to judge."""
    answer = answered(said(None, ToolCall(name, "{")))
    assert texts_to_judge(answer, SCHEMA, TOOLS) == ()


@pytest.mark.parametrize("schema", [None, SchemaText(b"{"), SchemaText(b'{"a":' * 300 + b"1" + b"}" * 300)])
def test_without_a_schema_that_can_be_compared_calls_are_skipped(schema: SchemaText | None) -> None:
    """Also when a tool has no parameters, or some that nest too deeply."""
    deep: object = 1
    for _ in range(300):
        deep = {"a": deep}
    tools = {**TOOLS, "empty": None, "deep": deep}
    for name in tools:
        assert texts_to_judge(answered(said(None, ToolCall(name, "{}"))), schema, tools) == ()
        assert texts_to_judge(answered(said(None, ToolCall(name, "{}"))), SCHEMA, {"deep": deep}) == ()


@pytest.mark.parametrize("schema", [b"true", b"{}"])
def test_a_schema_that_takes_anything_is_one(schema: bytes) -> None:
    """Though it says nothing."""
    tools: dict[str, object] = {"true": True, "{}": {}}
    calls = said(None, ToolCall("true", "1"), ToolCall("{}", "2"))
    assert texts_to_judge(answered(calls), SchemaText(schema), tools) == (("1",) if schema == b"true" else ("2",))


def test_what_the_engine_withheld_is_skipped() -> None:
    """A refusal is no broken JSON; the other choices are judged."""
    refused, filtered = said(None, refusal="No."), said('{"a":', finish="content_filter")
    assert texts_to_judge(answered(refused, filtered), SCHEMA, TOOLS) == ()
    assert texts_to_judge(answered(refused, "[1]", filtered), SCHEMA, TOOLS) == ("[1]",)
