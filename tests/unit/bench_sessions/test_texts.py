"""Conversations of the benchmark of sessions."""

import json

from benchmarks.sessions.texts import LONGEST, SHORTEST, Writer, chat_body, message


def test_a_conversation_ends_with_the_user_and_is_hardly_larger_than_asked_for() -> None:
    """Roles alternate from user to user; the size is reached with at most two messages too many."""
    messages = Writer(1).conversation(20_000)
    roles = [json.loads(one)["role"] for one in messages]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
    assert sum(map(len, messages)) >= 20_000
    assert sum(map(len, messages[:-2])) < 20_000


def test_messages_have_one_to_two_thousand_characters() -> None:
    """The size of a message is realistic."""
    lengths = [len(json.loads(one)["content"]) for one in Writer(1).conversation(50_000)]
    assert min(lengths) >= SHORTEST
    assert max(lengths) <= LONGEST


def test_the_smallest_conversation_is_one_message() -> None:
    """One message of the user reaches a size of 1."""
    assert len(Writer().conversation(1)) == 1


def test_a_seed_fixes_the_texts() -> None:
    """Two writers of one seed write the same, of two seeds something else."""
    assert Writer(1).text(300) == Writer(1).text(300)
    assert Writer(1).text(300) != Writer(2).text(300)


def test_a_text_has_its_length_in_bytes() -> None:
    """Texts are ASCII."""
    assert len(Writer().text(300).encode()) == 300


def test_a_body_is_compact_json_with_the_messages_as_they_are() -> None:
    """Without spaces, as the openai package sends it."""
    body = chat_body([message("user", "Hi")], 4, stream=True)
    expected = b'{"model":"sim","messages":[{"role":"user","content":"Hi"}],"max_tokens":4,"stream":true}'
    assert body == expected
