"""What is wrong with an answer before its JSON is parsed."""

import pytest

from router_ext.gate.checks import REFUSALS, fault_before_json
from router_ext.model.gate import AnswerChoice, Checks, Fault
from tests.fakes.read_answers import CALL, answered, said

NONE = Checks()
NO_REFUSAL = Checks(no_refusal=True)
ALL = Checks(min_length=10, min_tokens=10, valid_json=True, no_refusal=True)


def fault(*choices: AnswerChoice | str | None, checks: Checks = NONE, tokens: int | None = None) -> Fault | None:
    """What is wrong when no JSON is expected."""
    return fault_before_json(answered(*choices, tokens=tokens), checks, json_expected=False)


def fault_of_json(*choices: AnswerChoice | str | None, checks: Checks = NONE) -> Fault | None:
    """What is wrong when JSON is expected."""
    return fault_before_json(answered(*choices), checks, json_expected=True)


@pytest.mark.parametrize("text", ["x", "{", "I cannot assist with that.", "<think>a</think>x"])
def test_any_text_is_good_where_nothing_is_asked_for(text: str) -> None:
    """Whether its JSON is good shows later."""
    assert fault(text) is None
    assert fault_of_json(text) is None


# Empty


@pytest.mark.parametrize("text", [None, "", " \n\t", "<think>a</think>", "<think></think>\n"])
def test_an_answer_without_text_is_empty(text: str | None) -> None:
    """Or without a choice; thinking alone is no answer. Whatever else is wrong with it."""
    assert fault() is Fault.EMPTY
    assert fault(text) is fault_of_json(said(text, finish="length"), checks=ALL) is Fault.EMPTY


@pytest.mark.parametrize(
    "choice", [said(None, CALL), said("", CALL), said(None, refusal="No."), said(None, finish="content_filter")]
)
def test_a_call_and_a_refusal_need_no_text(choice: AnswerChoice) -> None:
    """They are answers of another kind."""
    assert fault(choice) is None
    assert fault_of_json(choice) is None


# Truncated


def test_an_answer_that_was_cut_is_truncated_when_json_is_expected() -> None:
    """Half of a prose is one, half of a value is none; calls are JSON as well."""
    assert fault(said("[1,", finish="length")) is None
    assert fault_of_json(said("[1,", finish="length")) is Fault.TRUNCATED
    assert fault_of_json(said(None, CALL, finish="length")) is Fault.TRUNCATED
    assert fault_of_json(said("[1,", finish="stop")) is None


def test_an_answer_that_was_cut_in_its_thinking_is_truncated() -> None:
    """Whether JSON is expected or not, but for one that calls a tool."""
    assert fault("<think>Let me") is fault_of_json("<think>Let me") is Fault.TRUNCATED
    assert fault(said("<think>Let me", CALL)) is None


# Refusal


@pytest.mark.parametrize(
    "choice", [said("x", refusal="No."), said(None, refusal="No."), said("x", finish="content_filter")]
)
def test_the_engines_own_refusal_is_one(choice: AnswerChoice) -> None:
    """In its field, or as the reason of its end; only where refusals are asked about."""
    assert fault(choice, checks=NO_REFUSAL) is Fault.REFUSAL
    assert fault(choice) is None


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I\u2019m sorry, but I can\u2019t do that.",
        "I am sorry, but I cannot do that.",
        "  \nI CANNOT  ASSIST\nwith that",
        "I can not help you with this request.",
        "Sorry, but I can't",
        "As an AI language model, I cannot have opinions.",
        "<think>Hm.</think>\n\nI'm unable to assist with that.",
        "I must decline.",
    ],
)
def test_a_text_that_begins_like_a_refusal_is_one(text: str) -> None:
    """In any case, with either apostrophe, and behind its thinking; only where refusals are asked about."""
    assert fault(text, checks=NO_REFUSAL) is Fault.REFUSAL
    assert fault(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "A square cannot have five sides.",
        "They said: \"I'm sorry, but I can't help with that.\"",
        "I can't help without the file.",
        "I'm sorry to hear that! Restart the router.",
        "I cannot recommend this book enough.",
        "I am unable to attend the meeting on Monday.",
        '{"answer": "I cannot assist with that."}',
        "<think>I cannot assist with this. Or can I?</think>Yes.",
    ],
)
def test_other_texts_are_none(text: str) -> None:
    """The words elsewhere, or others."""
    assert fault(text, checks=NO_REFUSAL) is None


@pytest.mark.parametrize("opening", REFUSALS)
def test_every_opening_is_found_as_it_is_listed(opening: str) -> None:
    """And only as whole words."""
    assert (
        fault(f"{opening.capitalize()} that.", checks=NO_REFUSAL) is fault(opening, checks=NO_REFUSAL) is Fault.REFUSAL
    )
    assert fault(f"{opening}x", checks=NO_REFUSAL) is None


# Length


def test_a_text_has_at_least_so_many_characters() -> None:
    """Characters, not bytes; of the answer itself, without its thinking and white space around it."""
    checks = Checks(min_length=4)
    assert fault("日本語で", checks=checks) is None
    assert fault("日本語", checks=checks) is Fault.MIN_LENGTH
    assert fault("<think>long thoughts</think>\n\nabc \n", checks=checks) is Fault.MIN_LENGTH
    assert fault("<think>long thoughts</think>\n\nabcd", checks=checks) is None


def test_an_answer_has_at_least_so_many_tokens() -> None:
    """As the engine counted them."""
    checks = Checks(min_tokens=3)
    assert fault("x", checks=checks, tokens=3) is None
    assert fault("a long text all the same", checks=checks, tokens=2) is Fault.MIN_TOKENS


@pytest.mark.parametrize("tokens", [None, 0])
def test_tokens_that_were_not_counted_are_four_characters_each(tokens: int | None) -> None:
    """Rounded down."""
    checks = Checks(min_tokens=3)
    assert fault("x" * 12, checks=checks, tokens=tokens) is None
    assert fault("x" * 11, checks=checks, tokens=tokens) is Fault.MIN_TOKENS


def test_tokens_of_several_choices_are_estimated() -> None:
    """Engines count them together."""
    checks = Checks(min_tokens=3)
    assert fault("x" * 12, "x" * 12, checks=checks, tokens=1) is None
    assert fault("x" * 12, "x" * 11, checks=checks, tokens=100) is Fault.MIN_TOKENS


def test_calls_may_be_short() -> None:
    """Their text is beside the point."""
    assert fault(said("x", CALL), checks=ALL, tokens=1) is None


# Which


def test_every_choice_must_pass() -> None:
    """Wherever the bad one stands."""
    assert fault("x", "") is fault("", "x") is Fault.EMPTY
    assert fault("x", "y") is None


def test_the_first_fault_counts() -> None:
    """By the order of the faults, not of the choices or checks."""
    refused, cut = said("I must decline.", finish="length"), said("I must decline.")
    assert fault_of_json(refused, checks=ALL) is Fault.TRUNCATED
    assert fault("Sorry, I can't", checks=Checks(min_length=100, no_refusal=True)) is Fault.REFUSAL
    assert fault("x", checks=Checks(min_length=2, min_tokens=2)) is Fault.MIN_LENGTH
    assert fault_of_json("x", cut, refused, "", checks=ALL) is Fault.EMPTY
    assert fault_of_json("x", cut, checks=ALL) is Fault.REFUSAL
