"""From a conversation to tokens and block hashes."""

import pytest

from router_ext.demo.sim.errors import ApiError
from router_ext.demo.sim.prompt import Prompt, count_tokens, read_prompt
from router_ext.demo.sim.settings import SimSettings
from router_ext.demo.sim.templates import ImagePartError, MessageError, render_chat

SETTINGS = SimSettings(max_model_len=100)


@pytest.mark.parametrize(("size", "tokens"), [(0, 1), (1, 1), (4, 1), (5, 2), (400, 100)])
def test_four_bytes_are_a_token(size: int, tokens: int) -> None:
    """A started group counts."""
    assert count_tokens(b"x" * size) == tokens


def test_a_prompt_as_long_as_the_context_fits_and_one_byte_more_does_not() -> None:
    """100 tokens are 400 bytes."""
    assert isinstance(read_prompt(b"x" * 400, "", SETTINGS), Prompt)
    refused = read_prompt(b"x" * 401, "", SETTINGS)
    assert isinstance(refused, ApiError)
    assert (refused.status, refused.param) == (400, "input_tokens")


def test_the_next_turn_begins_with_all_of_this_turn_but_the_open_answer() -> None:
    """So every full block of the history is found again."""
    turn = [{"role": "user", "content": "one"}]
    longer = [*turn, {"role": "assistant", "content": "two"}, {"role": "user", "content": "three"}]
    assert render_chat(turn) == b"<|user|>\none\n<|assistant|>\n"
    assert render_chat(longer).startswith(b"<|user|>\none\n<|assistant|>\n")


def test_tools_come_first_and_roles_count() -> None:
    """Other tools or another role give another prefix."""
    turn = [{"role": "user", "content": "one"}]
    assert render_chat(turn, [{"a": 1}]).startswith(b'<|tools|>[{"a":1}]\n<|user|>')
    assert render_chat([{"role": "system", "content": "one"}]) != render_chat(turn)


def test_text_parts_read_as_one_text_and_images_need_a_model_that_sees() -> None:
    """A content part list and a plain string are the same prompt."""
    parts = [{"role": "user", "content": [{"type": "text", "text": "on"}, {"type": "text", "text": "e"}]}]
    assert render_chat(parts) == render_chat([{"role": "user", "content": "one"}])
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:x"}}]}]
    with pytest.raises(ImagePartError):
        render_chat(image)
    assert b"data:x" in render_chat(image, multimodal=True)


@pytest.mark.parametrize("message", ["text", {}, {"role": 1}, {"role": "user", "content": 5}])
def test_a_message_without_role_or_with_odd_content_is_an_error(message: object) -> None:
    """It never becomes a prompt."""
    with pytest.raises(MessageError):
        render_chat([message])
