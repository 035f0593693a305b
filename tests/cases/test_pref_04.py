"""PREF-04: fields that are put together without framing must not give one key for different pairs."""

from collections.abc import Iterator
from itertools import permutations

from tests.fakes.prompts import chat, message

PAIRS = (("team", "s1"), ("teams", "1"), ("teams1", ""), ("", "teams1"))
FIELDS = ("role", "name", "tool_call_id", "reasoning_content", "content", "refusal")


def _filled() -> Iterator[dict[str, str]]:
    """Messages with each pair in each two fields, in both orders."""
    for left, right in PAIRS:
        for one, other in permutations(FIELDS, 2):
            yield {"role": "user", "content": "-", one: left, other: right}


def test_no_two_ways_to_fill_two_fields_of_a_message_give_one_key() -> None:
    """Except where an empty field is a missing one: the same message then."""
    different = {tuple(item.get(field, "") for field in FIELDS) for item in _filled()}
    assert len({chat(item).key for item in _filled()}) == len(different)


def test_model_and_salt_are_apart() -> None:
    """Also from the first message's role and content."""
    chains = [chat(message("x"), model=model, cache_salt=salt) for model, salt in PAIRS]
    assert len({chain.key for chain in chains}) == 4


def test_role_and_content_are_apart() -> None:
    """('user', 'x') and ('use', 'rx')."""
    assert chat(message("x", "user")).key != chat(message("rx", "use")).key


def test_the_end_of_a_message_is_not_text() -> None:
    """One message that spells two does not pass for two, in whatever way the second is written."""
    two = chat(message("a"), message("b", "assistant"))
    spelled = ['a["assistant",null,null,null]b', 'am.["assistant",null,null,null]b', "a\nassistant: b"]
    assert all(chat(message(text)).key != two.key for text in spelled)
    assert chat(message([{"type": "text", "text": "a"}, {"type": "text", "text": spelled[0][1:]}])).key != two.key


def test_blocks_of_a_long_text_are_not_messages() -> None:
    """A text of one block and a rest is neither two parts nor two messages."""
    block, rest = "x" * 2048, "y"
    parts = [{"type": "text", "text": block}, {"type": "text", "text": rest}]
    chains = [chat(message(block + rest)), chat(message(parts)), chat(message(block), message(rest))]
    assert len({chain.key for chain in chains}) == 3
