"""What is wrong with an answer, as far as it shows before anybody parses its text."""

import re
from typing import Final

from router_ext.gate.text import after_thinking
from router_ext.model.gate import AnswerChoice, Checks, Fault, ReadAnswer

CHARACTERS_PER_TOKEN: Final = 4
"""What is assumed where no count is to be had: about English prose."""

REFUSALS: Final = (
    "i'm sorry, but i can't",
    "i'm sorry, i can't",
    "i'm really sorry, but i can't",
    "i'm sorry, but i'm unable to",
    "i'm sorry, but i'm not able to",
    "sorry, but i can't",
    "sorry, i can't",
    "i apologize, but i can't",
    "i apologize, but i'm unable to",
    "i can't assist with",
    "i can't help with",
    "i can't help you with",
    "i can't comply with",
    "i can't fulfill",
    "i can't provide assistance",
    "i'm unable to assist",
    "i'm unable to help",
    "i'm not able to assist",
    "i'm not able to help",
    "i won't assist with",
    "i won't help with",
    "i must decline",
    "as an ai, i can't",
    "as an ai language model, i can't",
)
"""How English refusals begin, in lower case, with ``can't`` for ``cannot`` and ``can not``, ``i'm`` for ``i am``, and
plain apostrophes. Few and unmistakable: a good answer that is taken for a refusal costs a call of the fallback.
"""

_REFUSAL: Final = re.compile(rf"(?:{'|'.join(map(re.escape, REFUSALS))})(?!\w)")
_OPENING: Final = 200
"""As much of a text, in characters, as is looked at for a refusal: the longest one is far shorter."""

_SPELLINGS: Final = (("\u2019", "'"), ("can not", "can't"), ("cannot", "can't"), ("i am ", "i'm "))
_FILTERED: Final = "content_filter"
_CUT: Final = "length"


def fault_before_json(answer: ReadAnswer, checks: Checks, *, json_expected: bool) -> Fault | None:
    """The first fault of an answer, in the order of ``Fault``, that shows without a look at its JSON; None for none.

    Every choice must be without one. EMPTY: no choice, or one without text, calls and refusal. TRUNCATED: the model was
    cut off within its ``<think>`` block, or anywhere when JSON is expected. REFUSAL, if the checks ask for it: the
    engine says so, or its content filter ended the answer, or the text begins like one of ``REFUSALS``. MIN_LENGTH:
    fewer characters. MIN_TOKENS: fewer tokens by the engine's count, which includes its reasoning; without one, and for
    each of several choices, which engines count together, characters divided by ``CHARACTERS_PER_TOKEN``, rounded down.

    Text is what follows a ``<think>`` block, without white space around it. Choices that call a tool may have none.
    """
    if not answer.choices:
        return Fault.EMPTY
    counted = answer.usage.completion_tokens if answer.usage and len(answer.choices) == 1 else 0
    found = {_fault(choice, checks, counted, json_expected=json_expected) for choice in answer.choices}
    return next((fault for fault in Fault if fault in found), None)


def is_withheld(choice: AnswerChoice) -> bool:
    """The engine itself says that it does not answer."""
    return bool(choice.refusal) or choice.finish_reason == _FILTERED


def _fault(choice: AnswerChoice, checks: Checks, counted: int, *, json_expected: bool) -> Fault | None:
    text = after_thinking(choice.text or "")
    said = (text or "").strip()
    must_speak = not choice.tool_calls
    if must_speak and text is not None and not said and not is_withheld(choice):
        return Fault.EMPTY
    if (must_speak and text is None) or (json_expected and choice.finish_reason == _CUT):
        return Fault.TRUNCATED
    if checks.no_refusal and (is_withheld(choice) or _begins_like_a_refusal(said)):
        return Fault.REFUSAL
    return _too_short(said, checks, counted) if must_speak else None


def _too_short(said: str, checks: Checks, counted: int) -> Fault | None:
    if len(said) < checks.min_length:
        return Fault.MIN_LENGTH
    if (counted or len(said) // CHARACTERS_PER_TOKEN) < checks.min_tokens:
        return Fault.MIN_TOKENS
    return None


def _begins_like_a_refusal(said: str) -> bool:
    opening = " ".join(said[:_OPENING].lower().split())
    for spelling, usual in _SPELLINGS:
        opening = opening.replace(spelling, usual)
    return _REFUSAL.match(opening) is not None
