"""What a call costs, in whole micro-dollars: millionths of a US dollar."""

from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

from router_ext.model.backend import Backend
from router_ext.model.outcome import Usage

PROXIED: Final = "proxied"
"""The kind of a call that a request asked for."""
FALLBACK: Final = "fallback"
"""The kind of a call that the quality gate made in place of one whose answer was bad."""

SHADOW: Final = "shadow"
"""The kind of a call that copies a request to a backend under test. No budget sees it."""

_EXACT: Final = Context(prec=400, rounding=ROUND_HALF_UP)
"""Digits enough for any sum of prices (down to 5e-324, up to 1e6) times counts of up to 50 digits: nothing is rounded
before the end.
"""


def cost_micro_usd(backend: Backend, usage: Usage) -> int:
    """The cost of one call, ≥ 0: US dollars per 1,000,000 tokens are micro-dollars a token.

    Cached tokens are part of the prompt's and cost ``cost_cached_input_1m`` where that is set, else the input price;
    more of them than the prompt has count as the whole prompt. A price that is not set is 0, as is a count below 0.
    Prices are the decimal numbers of the configuration, and the exact sum is rounded once, half a micro-dollar up.
    """
    prompt = max(0, usage.prompt_tokens)
    cached = min(max(0, usage.cached_tokens or 0), prompt)
    input_1m, cached_1m = backend.cost_input_1m, backend.cost_cached_input_1m
    priced = (
        (prompt - cached, input_1m),
        (cached, input_1m if cached_1m is None else cached_1m),
        (max(0, usage.completion_tokens), backend.cost_output_1m),
    )
    total = Decimal(0)
    for tokens, price_1m in priced:
        # The shortest text that gives a float back is the number that was written.
        total = _EXACT.fma(tokens, Decimal(str(price_1m or 0)), total)
    return int(_EXACT.to_integral_value(total))
