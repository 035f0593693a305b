"""GATE-06: an answer that began with its thinking failed validation, or its thinking was taken for the answer."""

import json

import pytest

from router_ext.gate.checks import fault_before_json
from router_ext.gate.judged import texts_to_judge
from router_ext.model.gate import Checks, Fault, ReadAnswer
from router_ext.payload.read_answer import plain_answer
from tests.fakes.chat_answers import completion

REPLY = '<think>maybe {"ok":false}?</think>\n{"ok":true}'


def _answer(text: str) -> ReadAnswer:
    answer = plain_answer(completion({"content": text}))
    assert answer is not None
    return answer


@pytest.mark.parametrize(
    "reply", [REPLY, "\n" + REPLY, REPLY.replace("maybe", "\n```json\n"), REPLY.replace("\n", "\n```json\n") + "\n```"]
)
def test_thinking_is_skipped(reply: str) -> None:
    """Whatever JSON and fences stand in it."""
    assert fault_before_json(_answer(reply), Checks(), json_expected=True) is None
    (text,) = texts_to_judge(_answer(reply), None, {})
    assert json.loads(text) == {"ok": True}


def test_thinking_without_an_end_is_truncated() -> None:
    """Also when it holds the JSON, and whatever the engine gives as the reason of its end."""
    answer = _answer('<think>maybe\n```json\n{"ok":true}\n```')
    assert fault_before_json(answer, Checks(), json_expected=True) is Fault.TRUNCATED


def test_the_answer_keeps_its_thinking() -> None:
    """The gate reads the text and rewrites nothing."""
    answer = _answer(REPLY)
    texts_to_judge(answer, None, {})
    assert answer.choices[0].text == REPLY
