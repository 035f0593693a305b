"""How many tokens an answer may have at most, by what its request says."""

import math
from collections.abc import Mapping
from typing import Final

from router_ext.model.request import Api

UNLIMITED_TOKENS: Final = 4096
"""What is assumed of one choice when the request names no limit: few answers are longer, and a context's full length
would take a day's budget for each open request.
"""

MOST_TOKENS: Final = 1_000_000
"""No request counts as more, whatever it asks for: a made-up limit must not take the budget of others."""

_LIMITS: Final = ("max_completion_tokens", "max_tokens", "max_output_tokens")
_CHOICES: Final = ("n", "best_of")
_DIGITS: Final = 18


def max_output_tokens(path: str, fields: Mapping[str, object]) -> int:
    """The tokens of all choices together, 0..``MOST_TOKENS``. ``fields`` is the body's top level.

    Of several limits the highest counts, as engines differ in which one wins; one that is no number above 0 is none.
    Each prompt of a list of prompts has its own choices.
    """
    if path == Api.EMBEDDINGS:
        return 0
    limit = max((_count(fields.get(name)) for name in _LIMITS), default=0) or UNLIMITED_TOKENS
    choices = max(1, *(_count(fields.get(name)) for name in _CHOICES))
    return min(MOST_TOKENS, limit * choices * _prompts(fields.get("prompt")))


def _count(value: object) -> int:
    """A whole number as engines read it, also from "12" and 12.0; 0 where there is none."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _DIGITS:
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return max(0, math.ceil(value))


def _prompts(prompt: object) -> int:
    """A list of texts, or of lists of tokens, is that many prompts; one of tokens is one."""
    if not isinstance(prompt, list):
        return 1
    return max(1, sum(isinstance(item, str | list) for item in prompt))
