"""GATE-04: truncated JSON was repaired and passed on as complete."""

import json

import pytest

from router_ext.gate.checks import fault_before_json
from router_ext.gate.judged import texts_to_judge
from router_ext.model.gate import Checks, Fault, SchemaText
from router_ext.payload.read_answer import StreamedAnswerReader, plain_answer
from tests.fakes.chat_answers import chunk, completion

REPLY = '{"title":"Q3","items":["x","y"'
SCHEMA = SchemaText(b'{"type":"object","properties":{"items":{"type":"array"}},"required":["title"]}')


def test_a_truncated_answer_has_a_reason_of_its_own() -> None:
    """It is neither broken JSON nor a mismatch; streamed or not."""
    reader = StreamedAnswerReader()
    reader.feed(chunk({"content": REPLY}, "length"))
    for answer in (plain_answer(completion({"content": REPLY}, "length")), reader.answer()):
        assert answer is not None
        assert fault_before_json(answer, Checks(), json_expected=True) is Fault.TRUNCATED


@pytest.mark.parametrize("ending", ["", "]", "]}"])
def test_one_that_happens_to_be_whole_is_truncated_too(ending: str) -> None:
    """The engine says that there was more to come."""
    answer = plain_answer(completion({"content": REPLY + ending}, "length"))
    assert answer is not None
    assert fault_before_json(answer, Checks(), json_expected=True) is Fault.TRUNCATED


def test_nothing_is_repaired() -> None:
    """An engine that does not say so gets its text judged as it is."""
    answer = plain_answer(completion({"content": REPLY}, "stop"))
    assert answer is not None
    assert fault_before_json(answer, Checks(), json_expected=True) is None
    assert texts_to_judge(answer, SCHEMA, {}) == (REPLY,)
    with pytest.raises(json.JSONDecodeError):
        json.loads(REPLY)
