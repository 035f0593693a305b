"""Answers as the quality gate has read them."""

from router_ext.model.gate import AnswerChoice, ReadAnswer, ToolCall
from router_ext.model.outcome import Usage

CALL = ToolCall("f", "{}")


def said(text: str | None, *calls: ToolCall, finish: str = "stop", refusal: str = "") -> AnswerChoice:
    """A choice with this text."""
    return AnswerChoice(0, text, calls, finish, refusal)


def answered(*choices: AnswerChoice | str | None, tokens: int | None = None) -> ReadAnswer:
    """An answer with these choices, or choices of these texts; ``tokens`` is what the engine counted."""
    read = [choice if isinstance(choice, AnswerChoice) else said(choice) for choice in choices]
    return ReadAnswer(tuple(read), None if tokens is None else Usage(1, tokens))
