"""The message that is kept of a streamed answer."""

import json

import pytest

from router_ext.payload.answer_message import plain_message
from router_ext.payload.answer_pieces import ENTRY_BYTES
from router_ext.stream.sse import SseReader
from tests.captures import load_response
from tests.fakes.chat_answers import call, chunk, completion, kept, merged, streamed

START = {"role": "assistant", "content": ""}


def _function(name: str | None = None, arguments: str | None = None) -> dict[str, str | None]:
    return {"name": name, "arguments": arguments}


def _made(call_id: str, name: str, arguments: str) -> dict[str, object]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_pieces_of_content_are_one_text() -> None:
    """From the first event to the finish reason, whatever the last one brings."""
    last = chunk({"content": " you?"}, "stop")
    message = streamed(chunk(START), chunk({"content": "How"}), chunk({"content": " are"}), last)
    assert message.finished
    assert message.message() == b'{"role":"assistant","content":"How are you?"}'


@pytest.mark.parametrize(
    ("deltas", "content"),
    [([], None), ([{"content": None}], None), ([{"content": ""}], ""), ([{"content": None}, {"content": "x"}], "x")],
)
def test_content_is_null_until_a_text_comes(deltas: list[object], content: str | None) -> None:
    """An empty text is one."""
    assert merged(*deltas) == {"role": "assistant", "content": content}


@pytest.mark.parametrize("reason", ["stop", "length", "tool_calls", "content_filter"])
def test_a_finish_reason_makes_it_whole(reason: str) -> None:
    """Any but ``error``."""
    message = streamed(chunk({"content": "Hi"}, reason))
    assert message.finished
    assert message.message() is not None


@pytest.mark.parametrize("reason", [None, "", "error", 1])
def test_without_one_there_is_no_message(reason: object) -> None:
    """A stream that broke off is not kept."""
    message = streamed(chunk({"content": "Hi"}, reason), b"[DONE]")
    assert not message.finished
    assert message.message() is None


def test_the_first_role_counts() -> None:
    """Some engines repeat it in every chunk."""
    assert merged({"role": None}, {"role": "model"}, {"role": "assistant"})["role"] == "model"


def test_only_choice_0_is_kept() -> None:
    """The others' pieces, and their ends, are not its own."""
    other = chunk({"content": "no"}, "stop", index=1)
    message = streamed(chunk({"content": "y"}), other)
    assert not message.finished
    message.feed(chunk({"content": "es"}, "stop"))
    assert message.message() == b'{"role":"assistant","content":"yes"}'


def test_a_choice_without_an_index_is_choice_0() -> None:
    """As engines with a single choice may leave it out."""
    message = streamed(b'{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}')
    assert message.message() == b'{"role":"assistant","content":"Hi"}'


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_is_kept_beside_tool_calls_only(name: str) -> None:
    """Joined like content."""
    thought = [{name: "Hm"}, {name: "."}]
    assert merged(*thought) == {"role": "assistant", "content": None}
    assert merged(*thought, call(0, id="c", function=_function("w", "{}"))) == {
        "role": "assistant",
        "content": None,
        name: "Hm.",
        "tool_calls": [_made("c", "w", "{}")],
    }


def test_a_refusal_and_an_old_function_call_are_joined() -> None:
    """The name of a function comes once, its arguments in pieces."""
    assert merged({"refusal": "N"}, {"refusal": "o."}) == {"role": "assistant", "content": None, "refusal": "No."}
    pieces = [{"function_call": {"name": "w"}}, {"function_call": {"arguments": "{"}}]
    called = merged(*pieces, {"function_call": {"arguments": "}"}})
    assert called == {"role": "assistant", "content": None, "function_call": {"name": "w", "arguments": "{}"}}
    assert merged(pieces[0])["function_call"] == {"name": "w", "arguments": ""}


def test_tool_calls_are_merged_by_their_index() -> None:
    """In whatever order they come, and in the order of their indexes."""
    assert merged(
        call(1, id="b", function=_function("g", "")),
        call(0, id="a", type="function", function=_function("f", "{")),
        call(1, function=_function(None, "[1,")),
        call(0, id=None, type=None, function=_function(None, "}")),
        call(1, id="", function=_function("", "2]")),
    )["tool_calls"] == [_made("a", "f", "{}"), _made("b", "g", "[1,2]")]


@pytest.mark.parametrize(
    ("entries", "calls"),
    [
        ([call(id="a", function=_function("f", "{")), call(function=_function(None, "}"))], [("a", "f", "{}")]),
        (
            [call(id="a", function=_function("f", "{}")), call(id="b", function=_function("g", "[]"))],
            [("a", "f", "{}"), ("b", "g", "[]")],
        ),
        (
            [
                call(id="a", function=_function("f", "{")),
                call(id="b", function=_function("g", "[")),
                call(id="a", function=_function(None, "}")),
                call(function=_function(None, "!")),
            ],
            [("a", "f", "{}!"), ("b", "g", "[")],
        ),
        (
            [
                call(3, id="a", function=_function("f", "{")),
                call(id="b", function=_function("g", "[]")),
                call(id="a", function=_function(None, "}")),
            ],
            [("a", "f", "{}"), ("b", "g", "[]")],
        ),
    ],
    ids=["one", "by id", "taking turns", "after an index"],
)
def test_without_an_index_the_id_or_the_call_before_counts(
    entries: list[object], calls: list[tuple[str, str, str]]
) -> None:
    """A new id is a new call."""
    assert merged(*entries)["tool_calls"] == [_made(*made) for made in calls]


@pytest.mark.parametrize("names", [["get_weather"] * 3, ["get_", "weather"], ["", "get_weather", None]])
def test_a_name_may_be_repeated_or_cut(names: list[str | None]) -> None:
    """Both are seen; the first id and type stay."""
    pieces = [call(0, id=f"c{at}", type="function", function=_function(name, "1")) for at, name in enumerate(names)]
    assert merged(*pieces)["tool_calls"] == [_made("c0", "get_weather", "1" * len(names))]


def test_a_call_without_arguments_has_empty_ones() -> None:
    """And without an id it gets none."""
    assert merged(call(0, function={"name": "f"}))["tool_calls"] == [
        {"type": "function", "function": {"name": "f", "arguments": ""}}
    ]


def test_a_custom_tool_has_an_input() -> None:
    """Joined like arguments."""
    first = call(0, id="c", type="custom", custom={"name": "sql", "input": "SELECT"})
    assert merged(first, call(0, custom={"input": " 1"}))["tool_calls"] == [
        {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "SELECT 1"}}
    ]


def test_unknown_fields_of_a_call_are_kept() -> None:
    """Providers sign calls and want the signature back; the last value counts."""
    signed = {"google": {"thought_signature": "AB=="}}
    pieces = [call(0, id="c", extra_content=None), call(0, extra_content={}), call(0, extra_content=signed)]
    assert merged(call(0, function=_function("f", "{}")), *pieces)["tool_calls"] == [
        {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": signed}
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[DONE]",
        b"null",
        b"[1]",
        b"\xff\\u",
        b"{",
        b"{}",
        b'{"choices":null}',
        b'{"choices":{}}',
        b'{"choices":[null,1,[]]}',
        b'{"choices":[{"index":0}]}',
        b'{"choices":[{"index":0,"delta":null}]}',
        b'{"choices":[{"index":0,"delta":[]}]}',
        b'{"choices":[{"index":"0","delta":{"content":"x"}}]}',
        b'{"choices":[{"index":0,"delta":{"content":5,"role":5,"refusal":[],"tool_calls":{},"function_call":"x"}}]}',
        b'{"choices":[{"index":0,"delta":{"tool_calls":[null,5,"x"]}}]}',
        b'{"choices":[{"index":0,"delta":{"content":"\\u12"}}]}',
        b'{"choices":[{"index":0,"delta":{"content":"\\ud800","x":' + b"[" * 5000,
        b'{"error":{"message":"x"}}',
    ],
)
def test_other_events_say_nothing(data: bytes) -> None:
    """And do not raise."""
    message = streamed(data, chunk({"content": "Hi"}), data, chunk({}, "stop"), data)
    assert message.message() == b'{"role":"assistant","content":"Hi"}'


def test_odd_fields_of_a_call_say_nothing() -> None:
    """What nests too deeply to be written, and names with lone surrogates."""
    deep = b'{"choices":[{"delta":{"tool_calls":[{"id":"c","x":' + b"[" * 300 + b"]" * 300 + b"}]}}]}"
    odd = rb'{"choices":[{"delta":{"tool_calls":[{"\ud800":1,"y":"\ud800","function":5,"type":5}]}}]}'
    message = streamed(deep, odd, chunk({}, "stop")).message()
    assert message == b'{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function"}]}'


def test_a_character_cut_in_two_is_joined() -> None:
    """Some servers cut at UTF-16 units; a half alone is U+FFFD."""
    halves = [{"content": "a\ud83d"}, {"content": "\ude00b"}, {"content": "\ud83d"}, {"content": "c"}]
    assert merged(*halves)["content"] == "a\U0001f600b\ufffdc"


def test_nothing_is_kept_above_the_limit() -> None:
    """Bytes of UTF-8 count, of reasoning too; the end is still seen."""
    at_limit = streamed(chunk({"content": "é" * 4, "reasoning": "xy"}), chunk({}, "stop"), limit=10)
    assert not at_limit.overflown
    assert at_limit.message() is not None
    over = streamed(chunk({"content": "é" * 4, "reasoning": "xyz"}), chunk({"content": "x"}, "stop"), limit=10)
    assert over.overflown
    assert over.finished
    assert over.message() is None


@pytest.mark.parametrize("entry", [{"index": 1}, {"id": "b"}, {"index": 0, "x": ""}])
def test_calls_without_text_count_too(entry: dict[str, object]) -> None:
    """So that no stream can make the router hold more than the limit."""
    first, second = chunk(call(0)), chunk({"tool_calls": [entry]})
    assert not streamed(first, limit=ENTRY_BYTES).overflown
    assert streamed(first, second, limit=2 * ENTRY_BYTES - 1).overflown


@pytest.mark.parametrize(("engine", "name"), [("vllm", "json_schema"), ("llamacpp", "json_schema")])
def test_both_forms_of_a_real_answer_are_kept_alike(engine: str, name: str) -> None:
    """The engines gave the same answer to the same request at temperature 0, byte for byte."""
    events = SseReader().feed(load_response(engine, f"{name}_stream").body)
    plain = plain_message(load_response(engine, name).body)
    assert plain is not None
    assert streamed(*events).message() == plain


def test_both_forms_of_a_real_tool_call_are_kept_alike() -> None:
    """But for the id, which vLLM draws at random."""
    message = streamed(*SseReader().feed(load_response("vllm", "tool_required_stream").body)).message()
    assert message is not None
    expected = kept(load_response("vllm", "tool_required").body)
    expected["tool_calls"][0]["id"] = "chatcmpl-tool-be8bbf50696bbda1"
    assert json.loads(message) == expected


@pytest.mark.parametrize(
    ("engine", "name", "content"),
    [
        ("vllm", "chat_stream_nousage", "1. 1\n2. "),
        ("vllm", "chat_stream_continuous_usage", "1. 1\n2. "),
        ("llamacpp", "chat_stream_usage", "1. 1\n2. 2\n3. 3\n4. 4\n5. 5"),
    ],
)
def test_real_streams(engine: str, name: str, content: str) -> None:
    """With usage in no chunk, in each, or in a last one without choices."""
    message = streamed(*SseReader().feed(load_response(engine, name).body)).message()
    assert message is not None
    assert json.loads(message) == {"role": "assistant", "content": content}


def test_a_real_stream_that_broke_is_not_kept() -> None:
    """The engine was killed in the middle of it."""
    message = streamed(*SseReader().feed(load_response("llamacpp", "kill9_midstream").body))
    assert not message.finished
    assert message.message() is None


def test_the_two_forms_have_one_shape() -> None:
    """Every kept field, in the same order."""
    made = _made("c", "w", "{}")
    whole = {"role": "assistant", "content": "x", "reasoning": "r", "refusal": "n", "tool_calls": [made]}
    parts = chunk({"refusal": "n", "tool_calls": [{"index": 0, **made}], "reasoning": "r", "content": "x"}, "stop")
    message, plain = streamed(parts).message(), plain_message(completion(whole))
    assert message is not None
    assert plain is not None
    assert list(json.loads(message)) == list(json.loads(plain)) == list(whole)
    assert json.loads(message) == json.loads(plain) == whole
