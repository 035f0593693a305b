"""What is sent, and what is said to it."""

import json

import jsonschema_rs
import pytest

from benchmarks.gate.requests import BOMB, ITEM_BYTES, MISFIT, SCHEMA, WrongAnswerError, chat, check, fitting, wanted
from benchmarks.sessions.wire import Answer
from router_ext.model.gate import Quality


def answer(**headers: str) -> Answer:
    """An answer with these headers; underscores stand for dashes."""
    return Answer(200, {name.replace("_", "-"): value for name, value in headers.items()}, b"{}", 1000, 0.01)


@pytest.mark.parametrize("size", [1, 1_000, 100_000])
def test_a_fitting_text_fits_and_is_hardly_larger_than_asked_for(size: int) -> None:
    """By less than one item."""
    text = fitting(size)
    assert jsonschema_rs.is_valid(SCHEMA, json.loads(text))
    assert size <= len(text) < size + ITEM_BYTES


def test_the_misfit_is_json_that_does_not_fit() -> None:
    """So it is the schema that finds it."""
    assert not jsonschema_rs.is_valid(SCHEMA, json.loads(MISFIT))


def test_the_bomb_has_less_than_4_kb() -> None:
    """It is small enough for every limit on size."""
    assert len(json.dumps(BOMB)) < 4096


def test_a_request_has_1_kb() -> None:
    """Its text is that of a person."""
    assert 900 < len(chat()) < 1100
    assert json.loads(chat("paced", stream=True))["stream"] is True


def test_a_schema_is_one_header() -> None:
    """Without spaces."""
    assert wanted({"type": "object"}) == ("x-kronaxis-response-schema", '{"type":"object"}')


def test_an_answer_of_which_the_gate_says_something_else_is_no_measurement() -> None:
    """Nor one of which it says nothing, where it should, or something, where it should not."""
    passed, plain = answer(x_kronaxis_quality="passed"), answer()
    assert check(passed, Quality.PASSED) is passed
    assert check(plain, None) is plain
    for wrong, quality in ((passed, Quality.FALLBACK), (plain, Quality.PASSED), (passed, None)):
        with pytest.raises(WrongAnswerError):
            check(wrong, quality)
