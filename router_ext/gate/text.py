"""What of an answer's text is the answer, and what of that is JSON.

All of it is linear in the length of the text.
"""

import re
from typing import Final

from msgspec import Struct

_THINK: Final = re.compile(r"\s*<think>")
_END_OF_THOUGHT: Final = "</think>"
_FENCE: Final = re.compile(r"\n[ \t]*(`{3,}|~{3,})([^\n]*)")
_JSON: Final = "json"


def after_thinking(text: str) -> str | None:
    """The text behind a ``<think>…</think>`` block that it begins with, all of it when it begins with none.

    None when the block does not end: the model was cut off in its reasoning.
    """
    begins = _THINK.match(text)
    if begins is None:
        return text
    _, end, answer = text[begins.end() :].partition(_END_OF_THOUGHT)
    return answer if end else None


def json_text(text: str) -> str:
    """What is to be parsed as JSON of an answer.

    A ``<think>…</think>`` block that it begins with is skipped. Then, of Markdown's fenced code blocks, the last one
    that is tagged ``json`` (in any case) counts; without one, a block that is the whole text, whatever its tag; else
    the text as it is. So prose around a value that stands in no fence stays, and is no JSON. Fences are those of
    CommonMark, three or more backticks or tildes, indented by any white space, and the last one may be missing. Lines
    end at LF or CRLF.
    """
    answer = after_thinking(text)
    if answer is None:
        return text
    blocks = _blocks(answer)
    tagged = [block.text for block in blocks if block.tag == _JSON]
    if tagged:
        return tagged[-1]
    return blocks[0].text if len(blocks) == 1 and blocks[0].is_all else answer


class _Block(Struct, frozen=True):
    """A fenced block. ``tag`` is in lower case; ``is_all`` says that nothing but white space stands around it."""

    tag: str
    text: str
    is_all: bool


def _blocks(text: str) -> list[_Block]:
    if "```" not in text and "~~~" not in text:
        return []
    # A fence is found by the end of the line before it.
    text = "\n" + text
    blocks: list[_Block] = []
    opening: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opening is None:
            opening = fence if _opens(fence) else None
        elif _closes(fence, opening):
            blocks.append(_block(text, opening, fence.start(), fence.end()))
            opening = None
    if opening is not None:
        blocks.append(_block(text, opening, len(text), len(text)))
    return blocks


def _block(text: str, opening: re.Match[str], end: int, after: int) -> _Block:
    tag = opening[2].split(maxsplit=1)[:1]
    alone = not text[: opening.start()].strip() and not text[after:].strip()
    return _Block("".join(tag).lower(), text[opening.end() : end], alone)


def _opens(fence: re.Match[str]) -> bool:
    """A line with more backticks behind it is code within a line."""
    return fence[1][0] == "~" or "`" not in fence[2]


def _closes(fence: re.Match[str], opening: re.Match[str]) -> bool:
    """As long as the opening at least, of the same characters, and alone in its line."""
    return fence[1].startswith(opening[1]) and not fence[2].strip()
