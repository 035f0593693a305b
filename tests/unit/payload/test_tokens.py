"""Estimates of tokens from sizes."""

import pytest

from router_ext.payload.tokens import MAX_MODELS, TokenRatio


@pytest.mark.parametrize(("size", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2), (400_000, 100_000)])
def test_four_bytes_are_a_token_until_more_is_known(size: int, tokens: int) -> None:
    """Rounded up, so that no text counts nothing."""
    assert TokenRatio().estimate("m", size) == tokens


def test_the_first_observation_counts_in_full() -> None:
    """And only for its own model."""
    ratio = TokenRatio()
    ratio.observe("m", 200, 100)
    assert (ratio.estimate("m", 100), ratio.estimate("n", 100)) == (50, 25)


def test_a_later_observation_counts_a_fifth() -> None:
    """From 2 bytes a token towards 7: to 3."""
    ratio = TokenRatio()
    ratio.observe("m", 200, 100)
    ratio.observe("m", 700, 100)
    assert ratio.estimate("m", 300) == 100
    assert ratio.estimate("m", 301) == 101


@pytest.mark.parametrize(("size", "tokens"), [(0, 5), (5, 0), (-1, 5), (5, -1)])
def test_empty_counts_teach_nothing(size: int, tokens: int) -> None:
    """An engine that counts nothing has not counted."""
    ratio = TokenRatio()
    ratio.observe("m", size, tokens)
    assert ratio.estimate("m", 4) == 1


@pytest.mark.parametrize(
    ("size", "tokens", "of_1600"),
    [(1, 4, 6400), (1, 5, 6400), (1, 3, 4800), (16, 1, 100), (17, 1, 100), (1_000_000, 1, 100), (15, 1, 107)],
)
def test_an_observation_is_bounded(size: int, tokens: int, of_1600: int) -> None:
    """From a quarter of a byte to 16 bytes a token, so that an image does not make every text look short."""
    ratio = TokenRatio()
    ratio.observe("m", size, tokens)
    assert ratio.estimate("m", 1600) == of_1600


def test_the_least_recently_used_model_is_forgotten() -> None:
    """An estimate is a use; one model over the limit goes."""
    ratio = TokenRatio()
    for at in range(MAX_MODELS):
        ratio.observe(f"m-{at}", 10, 10)
    assert ratio.estimate("m-0", 4) == 4
    ratio.observe("m-new", 10, 10)
    assert [ratio.estimate(name, 4) for name in ("m-0", "m-1", "m-2", "m-new")] == [4, 1, 4, 4]
