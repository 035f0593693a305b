"""What a call costs, by hand-computed sums in micro-dollars."""

from dataclasses import replace

import pytest

from router_ext.model.backend import Backend
from router_ext.model.money import cost_micro_usd
from router_ext.model.outcome import Usage
from tests.fakes.domain import backend


def priced(given: float | None = None, made: float | None = None, cached: float | None = None) -> Backend:
    """A backend with prices of input, output and cached input, in US dollars per 1,000,000 tokens."""
    return replace(backend(), cost_input_1m=given, cost_output_1m=made, cost_cached_input_1m=cached)


def test_dollars_for_a_million_tokens_are_micro_dollars_for_a_token() -> None:
    """A million prompt tokens at $0.15 and two million completion tokens at $0.60 are $1.35."""
    assert cost_micro_usd(priced(0.15, 0.6), Usage(1_000_000, 2_000_000)) == 1_350_000
    assert cost_micro_usd(priced(2.5, 10), Usage(1000, 100)) == 3500


@pytest.mark.parametrize(
    ("cached_tokens", "cost"),
    [(None, 3000), (0, 3000), (1, 2997), (400, 1920), (1000, 300), (1001, 300), (-1, 3000)],
)
def test_cached_tokens_of_the_prompt_cost_their_own_price(cached_tokens: int | None, cost: int) -> None:
    """Of 1,000 tokens at $3, cached ones are $0.30; more than all of the prompt are none."""
    assert cost_micro_usd(priced(3, cached=0.3), Usage(1000, 0, cached_tokens)) == cost


def test_without_a_price_of_their_own_cached_tokens_cost_what_others_do() -> None:
    """A price of 0 is one."""
    assert cost_micro_usd(priced(3), Usage(1000, 0, 400)) == 3000
    assert cost_micro_usd(priced(3, cached=0), Usage(1000, 0, 400)) == 1800


@pytest.mark.parametrize(
    ("prices", "cost"),
    [(priced(), 0), (priced(given=2), 20), (priced(made=3), 15), (priced(cached=1), 4), (priced(2, 3, 1), 31)],
)
def test_a_price_that_is_missing_is_zero(prices: Backend, cost: int) -> None:
    """10 prompt tokens, 4 of them cached, and 5 completion tokens."""
    assert cost_micro_usd(prices, Usage(10, 5, 4)) == cost


@pytest.mark.parametrize(
    ("price", "tokens", "cost"),
    [
        (0.5, 1, 1),
        (0.5, 3, 2),
        (0.5, 5, 3),
        (0.499999, 1, 0),
        (0.49, 1, 0),
        (1.4999, 1, 1),
        (0.15, 10, 2),
        (0.15, 9, 1),
        (0.1, 15, 2),
        (0.1, 14, 1),
        (1.005, 100, 101),
        (1.005, 99, 99),
        (0.285, 100, 29),
        (0.285, 500, 143),
    ],
)
def test_half_a_micro_dollar_is_one_and_less_is_none(price: float, tokens: int, cost: int) -> None:
    """As on paper: 1.005 times 100 is 100.5, although the nearest float lies below it."""
    assert cost_micro_usd(priced(price), Usage(tokens)) == cost


def test_the_sum_is_rounded_once() -> None:
    """Two halves are one micro-dollar, and three times 0.4 are 1.2, not 0."""
    assert cost_micro_usd(priced(0.5, 0.5), Usage(1, 1)) == 1
    assert cost_micro_usd(priced(0.4, 0.4, 0.4), Usage(2, 1, 1)) == 1


def test_counts_below_zero_cost_nothing() -> None:
    """Engines report what they like."""
    assert cost_micro_usd(priced(1, 1), Usage(-5, -7, -2)) == 0
    assert cost_micro_usd(priced(1, 1, 9), Usage(-5, 7, 3)) == 7


def test_a_huge_count_is_exact() -> None:
    """2**64 + 1 tokens at the highest price, and 10**30 + 2 at 16 digits of a third, which end in .67."""
    assert cost_micro_usd(priced(1e6), Usage(2**64 + 1)) == 18_446_744_073_709_551_617_000_000
    assert cost_micro_usd(priced(0.3333333333333333), Usage(10**30 + 2)) == 333_333_333_333_333_300_000_000_000_001


def test_the_smallest_price_is_no_trouble() -> None:
    """It costs nothing by itself, and pushes a half that lacks nothing nowhere."""
    assert cost_micro_usd(priced(5e-324, 0.5), Usage(10**15, 1)) == 1
    assert cost_micro_usd(priced(5e-324), Usage(10**15)) == 0
