"""How long an answer may become, by its request."""

import pytest

from router_ext.payload.output_limit import max_output_tokens
from tests.fakes.domain import CHAT


@pytest.mark.parametrize(
    ("fields", "most"),
    [
        ({"max_tokens": 10}, 10),
        ({"max_completion_tokens": 10}, 10),
        ({"max_output_tokens": 10}, 10),
        ({"max_tokens": 10, "max_completion_tokens": 20}, 20),
        ({"max_tokens": 20, "max_completion_tokens": 10}, 20),
        ({"max_tokens": 10, "n": 3}, 30),
        ({"max_tokens": 10, "n": 2, "best_of": 5}, 50),
        ({"max_tokens": 10, "n": None}, 10),
        ({"max_tokens": 10, "n": 0}, 10),
        ({"max_tokens": 10.0, "n": 2.0}, 20),
        ({"max_tokens": "10"}, 10),
        ({"max_tokens": 1}, 1),
        ({"max_tokens": 1_000_000}, 1_000_000),
        ({"max_tokens": 1_000_001}, 1_000_000),
        ({"max_tokens": 10**18, "n": 10**18}, 1_000_000),
    ],
)
def test_the_highest_limit_counts_for_each_choice(fields: dict[str, object], most: int) -> None:
    """Engines differ in which of two limits wins, and read numbers in quotes; a million is enough for any."""
    assert max_output_tokens(CHAT, fields) == most


@pytest.mark.parametrize("limit", [None, 0, -1, True, "ten", "", "1" * 19, [], {}])
def test_what_is_no_limit_is_4096_for_each_choice(limit: object) -> None:
    """An engine writes on to the end of its context then, or refuses."""
    assert max_output_tokens(CHAT, {"max_tokens": limit}) == 4096
    assert max_output_tokens(CHAT, {"max_tokens": limit, "n": 2}) == 8192
    assert max_output_tokens(CHAT, {}) == 4096


@pytest.mark.parametrize(
    ("prompt", "most"),
    [("a", 10), (["a"], 10), (["a", "b"], 20), ([1, 2, 3], 10), ([[1, 2], [3]], 20), ([], 10), (None, 10)],
)
def test_each_of_several_prompts_has_its_own_choices(prompt: object, most: int) -> None:
    """A list of token numbers is one prompt."""
    assert max_output_tokens("/v1/completions", {"max_tokens": 10, "prompt": prompt}) == most


def test_an_embedding_writes_nothing() -> None:
    """Whatever is asked for."""
    assert max_output_tokens("/v1/embeddings", {"max_tokens": 10}) == 0
