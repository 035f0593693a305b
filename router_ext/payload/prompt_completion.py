"""The prompt of the completions API: one text, or token ids, or a batch of either."""

from array import array
from typing import Final, cast

from router_ext.payload.prompt_chain import Chain
from router_ext.payload.prompt_turn import as_utf8

TOKEN_SIZE: Final = 4
"""What a token id counts in a prompt's size: about the bytes of text that a token stands for."""


def add_completion(chain: Chain, fields: dict[str, object]) -> int:
    """Adds the prompt and returns how many turns it is: 1, or 0 when there is none of a known shape.

    The prompts of a batch mostly begin alike and go to one engine together: the first one stands for all, the size is
    that of all of them.
    """
    prompt = fields.get("prompt")
    prompts = prompt if isinstance(prompt, list) and not _is_tokens(prompt) else [prompt]
    if not (prompts and _add_prompt(chain, prompts[0])):
        return 0
    chain.begun = True
    chain.mark()
    chain.size += sum(_size(other) for other in prompts[1:])
    return 1


def _add_prompt(chain: Chain, prompt: object) -> bool:
    if isinstance(prompt, str):
        chain.text(b"c", b"", as_utf8(prompt))
        return bool(prompt)
    tokens = _tokens(prompt) if isinstance(prompt, list) else b""
    chain.text(b"k", b"", tokens)
    return bool(tokens)


def _is_tokens(prompt: list[object]) -> bool:
    return bool(prompt) and isinstance(prompt[0], int)


def _tokens(prompt: list[object]) -> bytes:
    """Token ids of 32 bits one after the other; empty when one of them is none."""
    try:
        return array("I", cast(list[int], prompt)).tobytes()
    except (TypeError, OverflowError):
        return b""


def _size(prompt: object) -> int:
    if isinstance(prompt, str):
        return len(as_utf8(prompt))
    return TOKEN_SIZE * len(prompt) if isinstance(prompt, list) else 0
