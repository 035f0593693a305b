"""The content of messages: texts, images and other parts, and whatever is none of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_ext.model.request import Api
from router_ext.payload.envelope import Envelope
from router_ext.payload.prompt import read_prompt
from router_ext.payload.prompt_turn import MEDIA_SIZE
from tests.fakes.prompts import LONG, chat, message, read, shared, sizes

HELLO = message("Hello")


def _part(text: str) -> dict[str, object]:
    return {"type": "text", "text": text}


def _picture(url: str, **fields: object) -> dict[str, object]:
    return {"type": "image_url", "image_url": {"url": url, **fields}}


def test_a_single_text_part_is_a_text() -> None:
    """Engines render both alike; so do all names of text parts and a bare string in the list."""
    parts = [[_part(LONG)], [{"type": "input_text", "text": LONG}], [{"type": "output_text", "text": LONG}], [LONG]]
    assert {chat(message(content)).key for content in parts} == {chat(message(LONG)).key}


def test_two_text_parts_are_not_their_concatenation() -> None:
    """Nor any other way to cut it."""
    cuts: list[object] = [[_part("a"), _part("bc")], [_part("ab"), _part("c")], "abc", [_part("abc"), _part("")]]
    assert len({chat(message(cut)).key for cut in cuts}) == 4


def test_the_end_of_each_part_is_a_boundary() -> None:
    """Another question about the same long document shares all of it."""
    left, right = (chat(message([_part(LONG), _part(question)])) for question in ("What?", "Why?"))
    assert sizes(left.prompt) == [2048, 4096, 4400, 4405]
    assert shared(left.prompt, right.prompt) == 4400


def test_two_different_images_share_nothing() -> None:
    """By their data or URL; what stands before them is shared."""
    left, right = (
        chat(HELLO, message([_picture(f"data:image/png;base64,{data}")]), HELLO) for data in ("AAAA", "AAAB")
    )
    assert shared(left.prompt, right.prompt) == 5
    assert sizes(left.prompt) == [5, 5 + MEDIA_SIZE, 10 + MEDIA_SIZE]


def test_the_detail_asked_for_does_not_make_another_image() -> None:
    """Neither does the short form, which is only the URL."""
    forms = [_picture("u", detail="high"), _picture("u"), {"type": "input_image", "image_url": "u", "detail": "low"}]
    assert len({chat(message([form])).key for form in forms}) == 1


def test_an_image_of_the_messages_api_counts_by_its_data() -> None:
    """Or by the URL of its source."""
    sources = [
        {"type": "base64", "media_type": "image/png", "data": "AAAA"},
        {"type": "base64", "media_type": "image/png", "data": "AAAB"},
        {"type": "url", "url": "https://example.org/a.png"},
    ]
    assert len({chat(message([{"type": "image", "source": source}])).key for source in sources}) == 3


def test_an_image_is_not_the_text_of_its_url() -> None:
    """Nor a part of an unknown type."""
    parts = [_picture("u"), _part("u"), {"type": "strange", "image_url": {"url": "u"}}]
    assert len({chat(message([part])).key for part in parts}) == 3


def test_the_order_of_parts_matters() -> None:
    """An image before a text is another prompt than after it."""
    assert chat(message([_picture("u"), _part("t")])).key != chat(message([_part("t"), _picture("u")])).key


def test_other_parts_count_by_all_their_fields() -> None:
    """In any key order, without nulls and the marks that clients move from turn to turn."""
    part = {"type": "tool_use", "id": "t", "name": "f", "input": {"b": 1, "a": 2}}
    same = {"name": "f", "input": {"a": 2, "b": 1}, "id": "t", "type": "tool_use", "cache_control": {}, "x": None}
    assert chat(message([part])).key == chat(message([same])).key
    assert chat(message([part])).key != chat(message([{**part, "input": {"b": 1, "a": 3}}])).key


def test_sound_and_files_have_a_fixed_size() -> None:
    """The length of their data says nothing about tokens; other data is another prompt all the same."""
    left, right = (
        chat(message([{"type": "input_audio", "input_audio": {"data": data}}])) for data in ("A" * 9999, "B")
    )
    assert left.prompt.size == right.prompt.size == MEDIA_SIZE
    assert left.key != right.key


@pytest.mark.parametrize("content", [7, 1.5, True, {"a": 1}, [7, None, [], {}], [[["x"]]]])
def test_content_of_no_known_shape_counts_by_its_json(content: object) -> None:
    """It never raises, equals itself and is not the empty message."""
    assert chat(message(content)).key == chat(message(content)).key
    assert chat(message(content)).key != chat(message("")).key


@pytest.mark.parametrize("content", [None, "", []])
def test_empty_content_is_missing_content(content: object) -> None:
    """The message itself still counts."""
    assert chat(message(content), HELLO).key == chat({"role": "user"}, HELLO).key
    assert chat(message(content), HELLO).key != chat(HELLO).key


@pytest.mark.parametrize("turn", [None, 7, "text", [], [["x"]], {}, {"role": 7}, {"role": ["user"]}, {"role": None}])
def test_a_turn_that_is_no_message_counts_by_its_json(turn: object) -> None:
    """It never raises and stands between its neighbours like any other."""
    assert shared(chat(HELLO, turn, HELLO).prompt, chat(HELLO, HELLO).prompt) == 5


def test_lone_surrogates_are_hashed() -> None:
    """Their escapes are valid in a body; in an answer they may stand as such."""
    raw = b'{"messages":[{"role":"user","content":"Hello"},{"role":"user","content":"\\ud800"}]}'
    assert len(read(Api.CHAT, raw).prompt.boundaries) == 2
    assert sizes(chat(HELLO).extended([message("\ud800", "assistant")])) == [5, 8]


def _nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize(
    "turn",
    [
        f'{{"role":"user","content":{_nested(1000)}}}',
        f'{{"role":"user","content":[{{"type":"x","x":{_nested(1000)}}}]}}',
        f'{{"role":"user","tool_calls":{_nested(1000)}}}',
        f'{{"role":"user","name":{_nested(1000)}}}',
        f'{{"role":{_nested(1000)}}}',
        _nested(1000),
    ],
)
def test_a_part_that_nests_too_deeply_ends_the_chain(turn: str) -> None:
    """What stands before it is shared, nothing after it; the body's length stands for the prompt's."""
    raw = f'{{"messages":[{{"role":"user","content":"Hello"}},{turn},{{"role":"user","content":"x"}}]}}'.encode()
    chain = read(Api.CHAT, raw)
    assert sizes(chain.prompt) == [5]
    assert chain.prompt.size == len(raw)
    assert chain.extended([HELLO]) == chain.prompt


@pytest.mark.parametrize("field", ["tools", "cache_salt", "documents"])
def test_a_beginning_that_nests_too_deeply_shares_nothing(field: str) -> None:
    """No key can stand for it."""
    raw = f'{{"{field}":{_nested(1000)},"messages":[{{"role":"user","content":"{LONG}"}}]}}'.encode()
    assert read(Api.CHAT, raw).prompt.boundaries == ()


def test_an_answer_that_nests_too_deeply_is_left_out() -> None:
    """The prompt itself is still held."""
    deep: list[object] = []
    for _ in range(1000):
        deep = [deep]
    assert sizes(chat(HELLO).extended([message(deep, "assistant")])) == [5]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["role", "content", "type"]), inner),
    max_leaves=12,
)


@given(api=st.sampled_from(Api), turns=JSON, tools=JSON)
def test_no_body_raises(api: Api, turns: object, tools: object) -> None:
    """Sizes grow, and the whole is at least as long as the last prefix."""
    fields = {"messages": turns, "input": turns, "prompt": turns, "system": tools, "tools": tools, "cache_salt": tools}
    chain = read_prompt(api, "m", Envelope(b"", fields, {}))
    for prompt in (chain.prompt, chain.extended(), chain.extended([turns])):
        assert sizes(prompt) == sorted(set(sizes(prompt)))
        assert prompt.size >= max(sizes(prompt), default=0)
