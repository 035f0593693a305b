"""GATE-14: log-probabilities of minus infinity, which are no JSON, made an answer unreadable."""

import json
from typing import NoReturn

import pytest

from router_ext.gate.judged import texts_to_judge
from router_ext.model.outcome import Usage
from router_ext.payload.answer_message import StreamedMessage, plain_message
from router_ext.payload.read_answer import StreamedAnswerReader, plain_answer

BODY = (
    b'{"choices":[{"index":0,"message":{"role":"assistant","content":"{\\"p\\":NaN}"},'
    b'"logprobs":{"content":[{"token":"a","logprob":-Infinity}]},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}'
)
EVENT = BODY.replace(b'"message"', b'"delta"')


def _refuse(number: str) -> NoReturn:
    raise ValueError(number)


def test_the_answer_is_read() -> None:
    """Its text and its usage, plain or streamed."""
    reader = StreamedAnswerReader()
    reader.feed(EVENT)
    for answer in (plain_answer(BODY), reader.answer()):
        assert answer is not None
        assert answer.usage == Usage(3, 1)
        assert [choice.text for choice in answer.choices] == ['{"p":NaN}']


def test_the_models_own_text_is_judged_as_it_is() -> None:
    """What is forgiven in the envelope is not in the answer: NaN stays in the text, where it is no JSON."""
    answer = plain_answer(BODY)
    assert answer is not None
    (text,) = texts_to_judge(answer, None, {})
    with pytest.raises(ValueError, match="NaN"):
        json.loads(text, parse_constant=_refuse)


@pytest.mark.parametrize("odd", [b'"content":"x"', b'"content":"x","tool_calls":[{"id":"c","score":NaN}]'])
def test_a_session_keeps_its_message_without_such_numbers(odd: bytes) -> None:
    """Wherever they stand: they are null there, so that later turns can be sent."""
    body = BODY.replace(rb'"content":"{\"p\":NaN}"', odd)
    streamed = StreamedMessage()
    streamed.feed(body.replace(b'"message"', b'"delta"'))
    for message in (plain_message(body), streamed.message()):
        assert message is not None
        assert b"NaN" not in message
        assert json.loads(message)["content"] == "x"
