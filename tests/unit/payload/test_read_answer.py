"""Answers as the quality gate reads them."""

import json

import pytest

from router_ext.model.gate import AnswerChoice, ReadAnswer, ToolCall
from router_ext.model.outcome import Usage
from router_ext.payload.answer_pieces import ENTRY_BYTES
from router_ext.payload.read_answer import MAX_ANSWER_BYTES, StreamedAnswerReader, plain_answer
from router_ext.stream.sse import SseReader
from tests.captures import load_response
from tests.fakes.chat_answers import call, chunk, completion

F = {"name": "f", "arguments": "{}"}


def body(*choices: object, **fields: object) -> bytes:
    """A plain answer with these choices."""
    return json.dumps({"choices": choices, **fields}).encode()


def choice(message: object, finish: object = "stop", **fields: object) -> AnswerChoice:
    """The only choice of a plain answer."""
    answer = plain_answer(completion(message, finish, **fields))
    assert answer is not None
    (only,) = answer.choices
    return only


def fed(*events: bytes, limit: int = MAX_ANSWER_BYTES) -> StreamedAnswerReader:
    """A reader that was fed these events."""
    reader = StreamedAnswerReader(limit)
    for event in events:
        reader.feed(event)
    return reader


def streamed(*deltas: object) -> AnswerChoice:
    """The only choice of a stream with these deltas."""
    answer = fed(*(chunk(delta) for delta in deltas)).answer()
    assert answer is not None
    (only,) = answer.choices
    return only


# Plain


def test_a_chat_completion_is_its_choices_and_its_usage() -> None:
    """Text and finish reason of each, in the order of the indexes."""
    second = {"index": 1, "message": {"role": "assistant", "content": "b"}, "finish_reason": "length"}
    first = {"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}}
    assert plain_answer(body(second, first, usage=usage)) == ReadAnswer(
        (AnswerChoice(0, "a", finish_reason="stop"), AnswerChoice(1, "b", finish_reason="length")), Usage(3, 2, 1)
    )


def test_a_completion_is_its_texts() -> None:
    """The API without messages."""
    choices = [{"index": at, "text": text, "finish_reason": "stop"} for at, text in enumerate(("a", ""))]
    assert plain_answer(body(*choices)) == ReadAnswer(
        (AnswerChoice(0, "a", finish_reason="stop"), AnswerChoice(1, "", finish_reason="stop"))
    )


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Hi", "Hi"),
        ("", ""),
        (None, None),
        (5, None),
        ({}, None),
        ([], ""),
        ([{"type": "text", "text": "H"}, {"type": "output_text", "text": "i"}], "Hi"),
        ([{"type": "thinking", "text": "hm"}, {"type": "text", "text": "Hi"}], "Hi"),
        ([None, 5, {}, {"type": []}, {"type": "text"}, {"type": "text", "text": 5}], ""),
    ],
)
def test_content_is_a_text_or_text_parts(content: object, text: str | None) -> None:
    """Parts are joined, other parts are no text, and other values are none."""
    assert choice({"role": "assistant", "content": content}).text == text
    assert streamed({"content": content}).text == text


def test_a_choice_without_message_or_content_has_no_text() -> None:
    """It is a choice all the same."""
    assert choice({}) == choice(None) == AnswerChoice(0, None, finish_reason="stop")
    assert plain_answer(body({})) == ReadAnswer((AnswerChoice(0, None),))


def test_tool_calls_are_read_one_by_one() -> None:
    """By their place, also when they have neither index nor id, or the same ones."""
    calls = [{"function": F}, {"function": F | {"arguments": "[]"}}, {"index": 0, "id": "c"}, {"index": 0, "id": "c"}]
    assert choice({"tool_calls": calls}).tool_calls == (
        ToolCall("f", "{}"),
        ToolCall("f", "[]"),
        ToolCall("", ""),
        ToolCall("", ""),
    )


def test_custom_tools_and_old_function_calls_are_calls() -> None:
    """The input of the one stands for arguments; the other comes last."""
    custom = {"type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
    message = {"tool_calls": [custom], "function_call": F}
    assert choice(message).tool_calls == (ToolCall("sql", "SELECT 1"), ToolCall("f", "{}"))
    assert streamed(call(0, **custom), {"function_call": F}).tool_calls == choice(message).tool_calls


@pytest.mark.parametrize("name", ["tool_calls", "function_call", "refusal", "content"])
@pytest.mark.parametrize("empty", [None, "", [], {}, [None]])
def test_empty_fields_are_no_calls_and_no_refusal(name: str, empty: object) -> None:
    """Engines write them all."""
    read = choice({"role": "assistant", name: empty})
    assert (read.tool_calls, read.refusal) == ((), "")


def test_a_refusal_is_read() -> None:
    """The field beside the content."""
    assert choice({"content": None, "refusal": "No."}) == AnswerChoice(0, None, finish_reason="stop", refusal="No.")


@pytest.mark.parametrize(("reason", "read"), [("length", "length"), (None, ""), ("", ""), (1, ""), ([], "")])
def test_a_finish_reason_is_a_text_or_none(reason: object, read: str) -> None:
    """Whatever the text says."""
    assert choice({"content": "x"}, reason).finish_reason == read


@pytest.mark.parametrize("index", [None, "1", True, 1.0])
def test_a_choice_without_an_index_has_that_of_its_place(index: object) -> None:
    """Only a whole number is one."""
    answer = plain_answer(body({"index": 7, "text": "b"}, {"index": index, "text": "a"}))
    assert answer == ReadAnswer((AnswerChoice(1, "a"), AnswerChoice(7, "b")))


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        ({"prompt_tokens": 3, "completion_tokens": 0}, Usage(3, 0)),
        ({"completion_tokens": 2, "prompt_tokens_details": None}, Usage(0, 2)),
        ({"prompt_tokens": -1, "completion_tokens": True, "prompt_tokens_details": {"cached_tokens": "1"}}, Usage()),
        ({}, Usage()),
        (None, None),
        ([], None),
    ],
)
def test_counts_are_whole_numbers(usage: object, read: Usage | None) -> None:
    """What is none is 0."""
    answer = plain_answer(body(usage=usage))
    assert answer is not None
    assert answer.usage == read


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity"])
def test_numbers_that_are_none_do_not_spoil_an_answer(number: bytes) -> None:
    """Some engines write them as log-probabilities; a text that speaks of them is as it is."""
    event = b'{"choices":[{"index":0,"%s":{"content":"NaN"},"logprobs":[' + number + b']}],"usage":{"prompt_tokens":3}}'
    expected = ReadAnswer((AnswerChoice(0, "NaN"),), Usage(3))
    assert plain_answer(event.replace(b"%s", b"message")) == expected
    assert fed(event.replace(b"%s", b"delta")).answer() == expected


def test_a_lone_half_of_a_character_is_replaced() -> None:
    """And two halves in two pieces are one character."""
    assert choice({"content": "a\ud83db"}).text == "a\ufffdb"
    halves = [{"content": "\ud83d"}, {"content": "\ude00"}]
    assert streamed(*halves).text == "\U0001f600"


@pytest.mark.parametrize(
    "other",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"{}",
        b'{"choices":null}',
        b'{"choices":{}}',
        b'{"choices":"x"}',
        b'{"object":"response","output":[]}',
        b'{"error":{"message":"x"}}',
        b'{"data":[{"embedding":[1]}]}',
        b'{"choices":[{"text":"\xff"}]}',
        b'{"choices":' + b"[" * 5000,
    ],
)
def test_anything_else_is_no_answer(other: bytes) -> None:
    """Neither as a body nor as an event, and an event says nothing then."""
    assert plain_answer(other) is None
    assert fed(other).answer() is None
    assert fed(other, chunk({"content": "x"}), other).answer() == ReadAnswer((AnswerChoice(0, "x"),))


@pytest.mark.parametrize("choices", [[], [None, 5, "x", []]])
def test_an_answer_may_have_no_choice(choices: list[object]) -> None:
    """What is no object is no choice."""
    assert plain_answer(body(*choices)) == ReadAnswer(())
    assert fed(body(*choices)).answer() == ReadAnswer(())


# Streamed


def test_pieces_are_joined_by_choice() -> None:
    """Texts grow, the last finish reason counts, and so does the last usage, in an event without choices."""
    usage = json.dumps({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}).encode()
    events = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "b"}, index=1),
        chunk({"content": "a"}),
        chunk({"content": "B"}, "length", index=1),
        chunk({}, "stop"),
        chunk({"refusal": "n"}),
        chunk({"refusal": "o"}),
    ]
    choices = (AnswerChoice(0, "a", (), "stop", "no"), AnswerChoice(1, "bB", (), "length"))
    assert fed(*events, usage, b"[DONE]").answer() == ReadAnswer(choices, Usage(3, 2))


def test_usage_of_each_event_is_replaced_by_the_next() -> None:
    """Whether it has choices or a list of them at all."""
    first = json.dumps({"choices": [{"text": "a"}], "usage": {"completion_tokens": 1}}).encode()
    assert fed(first).answer() == ReadAnswer((AnswerChoice(0, "a"),), Usage(0, 1))
    assert fed(first, b'{"usage":null}').answer() == ReadAnswer((AnswerChoice(0, "a"),), Usage(0, 1))
    assert fed(first, b'{"usage":{"completion_tokens":2}}').answer() == ReadAnswer((AnswerChoice(0, "a"),), Usage(0, 2))


def test_tool_calls_are_merged_by_their_index() -> None:
    """In the order of their indexes, each choice's on their own."""
    read = fed(
        chunk(call(1, id="b", function={"name": "g", "arguments": ""})),
        chunk(call(0, id="a", function={"name": "f", "arguments": "{"})),
        chunk(call(1, function={"arguments": "[]"})),
        chunk(call(0, id="z", function={"name": "h", "arguments": "1"}), index=1),
        chunk(call(0, function={"arguments": "}"})),
    ).answer()
    assert read == ReadAnswer(
        (
            AnswerChoice(0, None, (ToolCall("f", "{}"), ToolCall("g", "[]"))),
            AnswerChoice(1, None, (ToolCall("h", "1"),)),
        )
    )


def test_an_old_function_call_is_joined() -> None:
    """Its name comes once, its arguments in pieces."""
    pieces = [{"function_call": {"name": "f", "arguments": ""}}, {"function_call": {"arguments": "{"}}]
    assert streamed(*pieces, {"function_call": {"arguments": "}"}}).tool_calls == (ToolCall("f", "{}"),)


def test_an_answer_can_be_read_before_its_end() -> None:
    """None before it begins; reading it changes nothing."""
    reader = fed(b'{"usage":{"completion_tokens":2}}')
    assert reader.answer() is None
    reader.feed(chunk({"content": "a"}))
    assert reader.answer() == ReadAnswer((AnswerChoice(0, "a"),), Usage(0, 2))
    reader.feed(chunk({"content": "b"}))
    assert reader.answer() == ReadAnswer((AnswerChoice(0, "ab"),), Usage(0, 2))


def test_nothing_is_kept_above_the_limit() -> None:
    """Bytes of UTF-8 count, those of finish reasons too, and each choice a fixed number."""
    events = [chunk({"content": "é" * 4}), chunk({"content": "xy"}, index=1), chunk({}, "stop")]
    size = 2 * ENTRY_BYTES + 8 + 2 + 4
    at_limit = fed(*events, limit=size)
    assert not at_limit.overflown
    assert at_limit.answer() is not None
    over = fed(*events, limit=size - 1)
    assert over.overflown
    assert over.answer() is None
    over.feed(chunk({"content": "x"}))
    assert over.answer() is None


# Real engines


@pytest.mark.parametrize(
    ("engine", "name", "texts"),
    [
        ("vllm", "completion_nonstream", 1),
        ("vllm", "chat_n2", 2),
        ("vllm", "chat_logprobs", 1),
        ("vllm", "json_schema", 1),
        ("llamacpp", "json_schema", 1),
    ],
)
def test_real_answers_are_read(engine: str, name: str, texts: int) -> None:
    """All of their choices, with their texts as they stand in the body, and their usage."""
    response = load_response(engine, name)
    answer = plain_answer(response.body)
    assert answer is not None
    given = response.json()
    expected = [choice.get("text", choice.get("message", {}).get("content")) for choice in given["choices"]]
    assert [choice.text for choice in answer.choices] == expected
    assert len(answer.choices) == texts
    assert answer.usage is not None
    assert answer.usage.completion_tokens == given["usage"]["completion_tokens"]


@pytest.mark.parametrize(
    ("engine", "plain", "stream"),
    [
        ("vllm", "completion_nonstream", "completion_stream"),
        ("vllm", "json_schema", "json_schema_stream"),
        ("llamacpp", "json_schema", "json_schema_stream"),
        ("vllm", "tool_required", "tool_required_stream"),
    ],
)
def test_both_forms_of_a_real_answer_are_read_alike(engine: str, plain: str, stream: str) -> None:
    """The engines gave the same answer to the same request at temperature 0."""
    expected = plain_answer(load_response(engine, plain).body)
    assert expected is not None
    answer = fed(*SseReader().feed(load_response(engine, stream).body)).answer()
    assert answer is not None
    assert answer.choices == expected.choices


def test_a_real_tool_call_is_read() -> None:
    """Beside a content that is empty."""
    answer = plain_answer(load_response("vllm", "tool_named").body)
    assert answer is not None
    assert answer.choices == (AnswerChoice(0, "", (ToolCall("get_weather", '"Paris"'),), "stop"),)


@pytest.mark.parametrize("name", ["err_bad_json", "get_models", "messages_api", "responses_api"])
def test_other_real_answers_are_none(name: str) -> None:
    """Errors, lists of models and the other APIs."""
    assert plain_answer(load_response("vllm", name).body) is None
