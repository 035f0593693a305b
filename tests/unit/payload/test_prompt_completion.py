"""Prompt chains of the completions API: texts, token ids and batches of them."""

import orjson
import pytest

from router_ext.model.request import Api
from router_ext.payload.prompt import PromptChain
from router_ext.payload.prompt_chain import BLOCK
from tests.fakes.prompts import LONG, chat, message, read, shared, sizes


def completion(prompt: object, **fields: object) -> PromptChain:
    """The chain of a completions request."""
    return read(Api.COMPLETIONS, orjson.dumps({"prompt": prompt, **fields}))


def test_a_text_has_a_boundary_after_every_block_and_at_its_end() -> None:
    """A longer text that begins with it shares its whole blocks."""
    assert sizes(completion(LONG).prompt) == [2048, 4096, 4400]
    assert shared(completion(LONG).prompt, completion(LONG + "more").prompt) == 4096


def test_a_short_text_has_nothing_to_look_up() -> None:
    """Below one block, like a single short message."""
    assert sizes(completion("x" * (BLOCK - 1)).prompt) == []
    assert sizes(completion("x" * BLOCK).prompt) == [BLOCK]


def test_token_ids_count_four_bytes_each() -> None:
    """512 of them make a block."""
    tokens = list(range(1000))
    assert sizes(completion(tokens).prompt) == [2048, 4000]
    assert shared(completion(tokens).prompt, completion([*tokens[:600], 7]).prompt) == 2048
    assert shared(completion(tokens).prompt, completion([*tokens[:511], 7, *tokens]).prompt) == 0


def test_the_first_prompt_stands_for_a_batch() -> None:
    """The size is that of all; a batch of one is its prompt."""
    assert completion([LONG]) == completion(LONG)
    assert sizes(completion([LONG, "more"]).prompt) == [2048, 4096, 4400]
    assert completion([LONG, "more"]).prompt.size == 4404
    tokens = list(range(512))
    assert completion([tokens]) == completion(tokens)
    assert completion([tokens, [1, 2]]).prompt.size == 2056


JUNK: list[object] = [None, "", [], [[]], [""], [None], {}, 7, [1, "x"], [1, -1], [1.5], [2**32], [[[1]]]]


@pytest.mark.parametrize("prompt", JUNK)
def test_anything_else_is_no_prompt(prompt: object) -> None:
    """It has the empty chain."""
    assert completion(prompt) == PromptChain()


def test_a_completion_is_no_chat() -> None:
    """No template stands around its text."""
    assert shared(completion(LONG).prompt, chat(message(LONG)).prompt) == 0


def test_salt_keeps_completions_apart() -> None:
    """Tools, which this API does not have, make no difference."""
    assert shared(completion(LONG).prompt, completion(LONG, cache_salt="s").prompt) == 0
    assert completion(LONG, tools=[{}]) == completion(LONG)


def test_the_answer_of_a_completion_adds_nothing() -> None:
    """The next prompt is one text, whose blocks are not those of two."""
    chain = completion("x")
    assert sizes(chain.extended()) == sizes(chain.extended([message("y", "assistant")])) == [1]
