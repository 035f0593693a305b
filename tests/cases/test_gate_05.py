"""GATE-05: an answer whose reasoning used all tokens was reported as a JSON error at column 1."""

import json
from typing import Any

import pytest

from router_ext.gate.checks import fault_before_json
from router_ext.gate.judged import texts_to_judge
from router_ext.model.gate import Checks, Fault, ReadAnswer, SchemaText
from router_ext.payload.read_answer import plain_answer

SCHEMA = SchemaText(b'{"type":"object"}')
NO_REFUSAL = Checks(no_refusal=True)


def _answer(message: dict[str, Any], finish: str = "length") -> ReadAnswer:
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}
    usage = {"prompt_tokens": 9, "completion_tokens": 6000, "total_tokens": 6009}
    answer = plain_answer(json.dumps({"choices": [choice], "usage": usage}).encode())
    assert answer is not None
    return answer


@pytest.mark.parametrize("message", [{"content": None}, {"content": ""}, {"content": "\n"}, {"content": []}, {}])
@pytest.mark.parametrize("finish", ["length", "stop"])
def test_no_content_is_a_reason_of_its_own(message: dict[str, Any], finish: str) -> None:
    """Null, empty or missing, whatever the reasoning says and however many tokens were counted."""
    answer = _answer({**message, "reasoning": '{"a":1}'}, finish)
    for json_expected in (True, False):
        assert fault_before_json(answer, Checks(min_tokens=5), json_expected=json_expected) is Fault.EMPTY


CALL = {"tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}


@pytest.mark.parametrize(
    ("message", "finish", "fault"),
    [
        (CALL, "tool_calls", None),
        ({"refusal": "I can't help with that."}, "stop", Fault.REFUSAL),
        ({}, "content_filter", Fault.REFUSAL),
    ],
)
def test_answers_of_another_kind_are_not_broken_json(message: dict[str, Any], finish: str, fault: Fault | None) -> None:
    """Refusals have a label of their own where they are asked about; none of these is parsed."""
    answer = _answer({"content": None, **message}, finish)
    assert fault_before_json(answer, NO_REFUSAL, json_expected=True) is fault
    assert fault_before_json(answer, Checks(), json_expected=True) is None
    assert texts_to_judge(answer, SCHEMA, {}) == ()
