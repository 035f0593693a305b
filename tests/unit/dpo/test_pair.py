"""The one form of a prompt, and the line of a pair."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router_ext.dpo.check import read_line
from router_ext.dpo.pair import KEYS, Unfit, line_of, messages_of, prompt_of, redacted_pair
from tests.fakes.lines import PAIR, pair

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
CALL_TEXT = '[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\\"a\\": 1}"}}]'


def _user(content: object) -> list[object]:
    return [{"role": "user", "content": content}]


def test_a_line_has_its_eight_keys_in_their_order() -> None:
    """The text is fixed, byte by byte; the time has milliseconds."""
    assert line_of(PAIR) == (
        b'{"prompt":[{"role":"user","content":"Name a prime."}],"chosen":"7","rejected":"9",'
        b'"timestamp":"2023-11-14T22:13:20.250Z","cheap_backend":"small","expensive_backend":"large",'
        b'"reason":"schema","rule":"chat"}'
    )
    assert tuple(json.loads(line_of(PAIR))) == KEYS


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\x85", "\n", "\r", "\x0b", "\x0c", "\x1c", "\x1e"])
def test_no_character_of_a_text_ends_the_line(character: str) -> None:
    """Some readers end lines at more characters than JSON escapes."""
    line = line_of(pair(chosen=f"a{character}b"))
    assert line.decode().splitlines() == [line.decode()]
    assert json.loads(line)["chosen"] == f"a{character}b"


def test_text_is_utf_8_and_halves_of_characters_are_replaced() -> None:
    """Two halves that were streamed apart are one character again."""
    assert 'chosen":"ž😀"'.encode() in line_of(pair(chosen="ž😀"))
    assert json.loads(line_of(pair(chosen="\ud83d\ude00 \ud83d!")))["chosen"] == "😀 \ufffd!"


@given(chosen=st.text(st.characters(codec="utf-8")), content=st.text(st.characters(codec="utf-8")))
def test_whatever_the_texts_are_the_line_reads_back_as_the_pair(chosen: str, content: str) -> None:
    """One line, and nothing is lost."""
    made = pair({"role": "user", "content": content}, chosen=chosen)
    line = line_of(made)
    assert len(line.decode().splitlines()) == 1
    assert read_line(line + b"\n") == made


def test_a_time_that_is_none_is_refused() -> None:
    """NaN is no JSON and no time."""
    with pytest.raises(ValueError, match="NaN"):
        line_of(pair(timestamp=math.nan))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Hi", "Hi"),
        ("", ""),
        (None, ""),
        ([], ""),
        ([{"type": "text", "text": "a"}], "a"),
        ([{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}, "c"], "a\nb\nc"),
        ([{"type": "refusal", "refusal": "No."}], "No."),
        ("see image/png;base64 in data:text/plain;base64,QQ==", "see image/png;base64 in data:text/plain;base64,QQ=="),
    ],
)
def test_content_is_a_string_however_it_was_sent(content: object, text: str) -> None:
    """Parts are joined by a line end, as engines do."""
    assert prompt_of(_user(content)) == ({"role": "user", "content": text},)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "https://host/a.png"}},
        {"type": "input_image", "image_url": "data:image/png;base64,QQ=="},
        {"type": "image", "source": {"type": "base64", "data": "QQ=="}},
        {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}},
        {"type": "video_url", "video_url": {"url": "https://host/a.mp4"}},
        {"type": "file", "file": {"file_data": "QQ=="}},
        {"type": "text", "text": "![a](data:image/png;base64,QQ==)"},
        {"type": "text", "text": "DATA:AUDIO/wav;BASE64,QQ=="},
    ],
)
def test_images_and_sound_make_no_pair(part: object) -> None:
    """Also where a text holds their data: a file of pairs has none."""
    assert prompt_of(_user([{"type": "text", "text": "What is this?"}, part])) is Unfit.MEDIA


def test_data_of_images_is_found_in_tool_calls_and_results() -> None:
    """Tools send and bring images as text."""
    image = "data:image/png;base64,QQ=="
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": json.dumps({"image": image})}}
    assert prompt_of([{"role": "assistant", "tool_calls": [call]}, *_user("ok")]) is Unfit.MEDIA
    assert prompt_of([{"role": "tool", "tool_call_id": "c1", "content": image}]) is Unfit.MEDIA
    assert prompt_of([{"role": "assistant", "audio": {"id": "a"}}, *_user("ok")]) is Unfit.MEDIA


def test_tool_calls_are_a_string_of_json_and_results_stay() -> None:
    """Names and ids stay with their messages; fields are in one order."""
    assert prompt_of(
        [
            {"content": None, "tool_calls": [CALL], "role": "assistant"},
            {"tool_call_id": "c1", "role": "tool", "name": "f", "content": [{"type": "text", "text": "2"}]},
        ]
    ) == (
        {"role": "assistant", "content": "", "tool_calls": CALL_TEXT},
        {"role": "tool", "content": "2", "name": "f", "tool_call_id": "c1"},
    )


def test_a_legacy_function_call_is_a_tool_call() -> None:
    """One form for both."""
    prompt = prompt_of([{"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}, *_user("ok")])
    assert not isinstance(prompt, Unfit)
    assert prompt[0]["tool_calls"] == '[{"type":"function","function":{"name":"f","arguments":"{}"}}]'


def test_fields_that_are_empty_or_unknown_are_left_out() -> None:
    """Among them null, an empty list of calls, and hints for a cache; a refusal stands in for content that is null."""
    assert prompt_of(
        [
            {"role": "assistant", "content": None, "refusal": "No.", "tool_calls": []},
            {"role": "user", "content": "Hi", "name": None, "cache_control": {"type": "ephemeral"}},
        ]
    ) == ({"role": "assistant", "content": "No."}, {"role": "user", "content": "Hi"})


@pytest.mark.parametrize(
    "messages",
    [
        None,
        [],
        {},
        ["Hi"],
        [{"content": "Hi"}],
        [{"role": "", "content": "Hi"}],
        [{"role": 1, "content": "Hi"}],
        [{"role": "user", "content": 1}],
        [{"role": "user", "content": {"type": "text", "text": "Hi"}}],
        [{"role": "user", "content": [{"type": "tool_result", "content": "x"}]}],
        [{"role": "user", "content": [{"type": "text", "text": 1}]}],
        [{"role": "user", "content": "Hi", "name": 1}],
        [{"role": "assistant", "tool_calls": "f()"}, {"role": "user", "content": "Hi"}],
        [{"role": "assistant", "tool_calls": ["f()"]}, {"role": "user", "content": "Hi"}],
    ],
)
def test_messages_of_another_api_make_no_pair(messages: object) -> None:
    """What is not understood is not guessed at."""
    assert prompt_of(messages) is Unfit.MALFORMED


def test_the_last_message_must_be_one_to_answer() -> None:
    """An answer behind an assistant's message would be a second one."""
    assert prompt_of([*_user("Hi"), {"role": "assistant", "content": "He"}]) is Unfit.LAST_ROLE
    assert prompt_of([{"role": "system", "content": "Be brief."}]) == ({"role": "system", "content": "Be brief."},)


def test_messages_are_read_from_the_bytes_of_a_request() -> None:
    """Half a character, which engines accept, reads as U+FFFD."""
    assert messages_of(b' [{"role": "user", "content": "a\\ud83d b"}] ') == ({"role": "user", "content": "a\ufffd b"},)


@pytest.mark.parametrize(
    "array", [b"", b"[", b"1", b'{"role":"user"}', b"[NaN]", b'[{"role":"user","content":"\xff"}]']
)
def test_bytes_that_are_no_messages_make_no_pair(array: bytes) -> None:
    """Never an exception."""
    assert messages_of(array) is Unfit.MALFORMED


def test_tool_calls_that_nest_too_deeply_make_no_pair() -> None:
    """250 levels of arguments pass, 300 are more than JSON is written with."""
    for depth, fits in ((250, True), (300, False)):
        deep = b'{"a":' * depth + b"1" + b"}" * depth
        array = b'[{"role":"assistant","tool_calls":[%s]},{"role":"user","content":"ok"}]' % deep
        assert (messages_of(array) is not Unfit.MALFORMED) is fits


def test_every_text_of_a_pair_is_redacted() -> None:
    """Content, names, tool calls and both answers; roles and what the router says stay."""
    made = pair(
        {"role": "user", "content": "I am a@b.example", "name": "c@b.example"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": '[{"function":{"arguments":"{\\"to\\":\\"d@b.example\\"}"}}]',
        },
        {"role": "tool", "content": "sent to e@b.example", "tool_call_id": "c1"},
        chosen='{"mail": "f@b.example"}',
        rejected="g@b.example",
        rule="h@b.example",
    )
    assert redacted_pair(made) == pair(
        {"role": "user", "content": "I am [EMAIL]", "name": "[EMAIL]"},
        {"role": "assistant", "content": "", "tool_calls": '[{"function":{"arguments":"{\\"to\\":\\"[EMAIL]\\"}"}}]'},
        {"role": "tool", "content": "sent to [EMAIL]", "tool_call_id": "c1"},
        chosen='{"mail": "[EMAIL]"}',
        rejected="[EMAIL]",
        rule="h@b.example",
    )
