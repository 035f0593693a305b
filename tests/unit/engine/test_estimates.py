"""Tokens that are estimated from bytes."""

import pytest

from router_ext.engine.estimates import Estimates
from router_ext.model.outcome import Carried, Usage
from router_ext.model.request import Caller, InferenceRequest
from tests.fakes.domain import CHAT

CHAT_REQUEST = InferenceRequest(CHAT, Caller(), "m", prompt_bytes=400)
EMBEDDINGS = InferenceRequest("/v1/embeddings", Caller(), "m", prompt_bytes=400)


@pytest.mark.parametrize(
    ("size", "streamed", "tokens"),
    [(1, True, 1), (225, True, 1), (226, True, 2), (1, False, 1), (600, False, 100), (601, False, 101), (0, True, 0)],
)
def test_a_model_that_nothing_is_known_of(size: int, streamed: bool, tokens: int) -> None:
    """225 bytes of a stream are a token, 6 of a plain answer, 4 of a prompt; parts count as a whole one."""
    assert Estimates().estimate("m", CHAT_REQUEST, Carried(7, size, streamed)) == Usage(100, tokens)


def test_embeddings_have_the_tokens_of_the_prompt() -> None:
    """Their answer is no text."""
    assert Estimates().estimate("m", EMBEDDINGS, Carried(7, 90_000, False)) == Usage(100, 0)


def test_a_body_that_nobody_saw_counts_by_its_size_on_the_wire() -> None:
    """As Envoy counted it."""
    blind = InferenceRequest(CHAT, Caller())
    assert Estimates().estimate("", blind, Carried(80, 225, True)) == Usage(20, 1)


def test_exact_answers_are_learned_from() -> None:
    """Model by model, streams by themselves. What is assumed weighs 20 tokens, and each answer leaves 0.9 of what was
    known: 4,050 and 1,000 bytes were 18 and 10 tokens, 72 and 400 bytes of prompts 18 and 200.
    """
    estimates = Estimates()
    estimates.learn("m", CHAT_REQUEST, Carried(0, 1000, True), Usage(200, 10))
    assert estimates.estimate("m", CHAT_REQUEST, Carried(0, 5050, True)) == Usage(185, 28)
    assert estimates.estimate("m", CHAT_REQUEST, Carried(0, 600, False)) == Usage(185, 100)
    assert estimates.estimate("n", CHAT_REQUEST, Carried(0, 225, True)) == Usage(100, 1)


def test_an_answer_weighs_as_much_as_it_is_long() -> None:
    """One of a single token, which is mostly frame, hardly counts beside one of 500."""
    estimates = Estimates()
    for size, tokens in ((100_000, 500), (900, 1)):
        estimates.learn("m", CHAT_REQUEST, Carried(0, size, True), Usage(200, tokens))
    assert 495 <= estimates.estimate("m", CHAT_REQUEST, Carried(0, 100_000, True)).completion_tokens <= 500


def test_an_answer_without_tokens_teaches_nothing() -> None:
    """A count of 0 says nothing of the bytes of a token."""
    estimates = Estimates()
    estimates.learn("m", CHAT_REQUEST, Carried(0, 1000, True), Usage(0, 0))
    assert estimates.estimate("m", CHAT_REQUEST, Carried(0, 450, True)) == Usage(100, 2)
