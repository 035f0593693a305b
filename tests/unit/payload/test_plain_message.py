"""The message that is kept of a plain answer."""

import pytest

from router_ext.payload.answer_message import plain_message
from tests.captures import load_response
from tests.fakes.chat_answers import completion, kept

CALLS = [{"id": "c1", "type": "function", "function": {"name": "w", "arguments": "{}"}}]


def test_role_and_content_are_kept_and_nothing_that_the_api_does_not_take_back() -> None:
    """Whatever else engines put into a message."""
    odd = {"annotations": [{"url": "x"}], "audio": {"id": "a"}, "provider_fields": {"x": 1}, "reasoning": "Hm."}
    assert kept(completion({"role": "assistant", "content": "Hi", **odd})) == {"role": "assistant", "content": "Hi"}


@pytest.mark.parametrize("content", [None, "", "Hi", [{"type": "text", "text": "Hi"}]])
def test_content_is_kept_as_it_is(content: object) -> None:
    """Null stays null, and empty stays empty."""
    assert kept(completion({"role": "assistant", "content": content})) == {"role": "assistant", "content": content}


def test_missing_fields_have_their_usual_values() -> None:
    """An answer is an assistant's, and content that is missing is null."""
    assert kept(completion({})) == {"role": "assistant", "content": None}


@pytest.mark.parametrize(
    ("name", "value"),
    [("tool_calls", CALLS), ("refusal", "No."), ("function_call", {"name": "w", "arguments": "{}"})],
)
def test_calls_and_refusals_are_kept(name: str, value: object) -> None:
    """Whole."""
    message = {"role": "assistant", "content": None, name: value}
    assert kept(completion(message)) == message


@pytest.mark.parametrize(
    "text",
    [b'"tool_calls":null', b'"tool_calls":[ ]', b'"refusal":null', b'"refusal":""', b'"function_call":{\n}'],
)
def test_empty_fields_are_left_out(text: bytes) -> None:
    """Some APIs refuse them when they are sent back."""
    body = b'{"choices":[{"finish_reason":"stop","message":{"role":"assistant","content":"Hi",' + text + b"}}]}"
    assert plain_message(body) == b'{"role":"assistant","content":"Hi"}'


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_is_kept_beside_tool_calls_only(name: str) -> None:
    """Where engines ask for it in the next turn."""
    message = {"role": "assistant", "content": None, name: "Hm.", "tool_calls": CALLS}
    assert kept(completion(message)) == message
    assert kept(completion(message | {"tool_calls": []})) == {"role": "assistant", "content": None}
    assert name not in kept(completion(message | {name: None}))


def test_values_keep_their_bytes() -> None:
    """Numbers beyond any precision, escapes and inner white space."""
    calls = rb'[ {"id": "\u0063", "n": 1.50, "big": 123456789012345678901234567890} ]'
    body = rb'{"choices":[{"finish_reason":"stop","message":{"tool_calls":' + calls + rb',"content":"\u00e9\/"}}]}'
    assert plain_message(body) == rb'{"role":"assistant","content":"\u00e9\/","tool_calls":' + calls + rb"}"


@pytest.mark.parametrize("reason", ["stop", "length", "tool_calls", "content_filter", "anything"])
def test_an_answer_with_a_reason_to_end_is_whole(reason: str) -> None:
    """Also when it was cut or filtered: that is what the client got."""
    assert kept(completion({"role": "assistant", "content": "Hi"}, reason)) is not None


@pytest.mark.parametrize("reason", [None, "", "error", 1, True])
def test_an_answer_without_one_is_not_kept(reason: object) -> None:
    """``error`` says that the engine failed on the way."""
    assert kept(completion({"role": "assistant", "content": "Hi"}, reason)) is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"Hello",
        b"[]",
        b"{}",
        b'{"error":{"message":"x"}}',
        b'{"choices":null}',
        b'{"choices":[]}',
        b'{"choices":[null]}',
        b'{"choices":[{"finish_reason":"stop"}]}',
        b'{"choices":[{"finish_reason":"stop","message":null}]}',
        b'{"choices":[{"finish_reason":"stop","message":"Hi"}]}',
        b'{"choices":[{"finish_reason":"stop","text":"Hi"}]}',
        b'{"choices":[{"finish_reason":"stop","message":{"content":"Hi"}}]',
        b'{"choices":[{"finish_reason":"stop","message":{"content":"\xff"}}]}',
        b'{"choices":[{"finish_reason":"stop","message":{"tool_calls":[1e999]}}]}',
        b'{"choices":[{"finish_reason":"stop","message":{"content":"' + b"[" * 5000,
        b'{"choices":[{"finish_reason":"stop","message":{"tool_calls":' + b"[" * 5000 + b"]" * 5000 + b"}}]}",
        b'{"choices":[{"finish_reason":"stop","message":{"tool_calls":"\\ud800",' + b"[" * 5000,
    ],
)
def test_what_is_no_answer_is_not_kept(body: bytes) -> None:
    """Nor what could not be sent in a later request, and nothing raises."""
    assert plain_message(body) is None


def test_lone_surrogates_are_replaced_and_pairs_stay() -> None:
    """Half a character says nothing, and stored messages must be UTF-8."""
    body = rb'{"choices":[{"finish_reason":"stop","message":{"content":"a\ud83d\ude00b\ud83dc\u00e9"}}],"n":1.50}'
    assert kept(body) == {"role": "assistant", "content": "a\U0001f600b\ufffdc\u00e9"}


def test_choice_0_is_kept_wherever_it_stands() -> None:
    """And the first one when none has that index."""
    one = b'{"index":1,"finish_reason":"stop","message":{"content":"one"}}'
    zero = b'{"index":0,"finish_reason":"stop","message":{"content":"zero"}}'
    two = b'{"index":2,"finish_reason":"stop","message":{"content":"two"}}'
    assert kept(b'{"choices":[' + one + b"," + zero + b"]}")["content"] == "zero"
    assert kept(b'{"choices":[' + two + b"," + one + b"]}")["content"] == "two"


@pytest.mark.parametrize(
    ("engine", "name", "message"),
    [
        ("vllm", "chat_nonstream", {"role": "assistant", "content": "The capital of France is Paris."}),
        ("vllm", "chat_n2", {"role": "assistant", "content": "Hello! How can"}),
        ("vllm", "chat_logprobs", {"role": "assistant", "content": "Hello! How"}),
        (
            "llamacpp",
            "json_schema",
            {"role": "assistant", "content": '{\n    "city": "Paris",\n    "population": 1111111111111111\n}'},
        ),
        (
            "vllm",
            "tool_required",
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [
                    {
                        "id": "chatcmpl-tool-abc476ed7771e27c",
                        "type": "function",
                        "function": {"name": "get_weather", "arguments": '"Paris"'},
                    }
                ],
            },
        ),
    ],
)
def test_real_answers(engine: str, name: str, message: object) -> None:
    """As vLLM and llama.cpp write them."""
    assert kept(load_response(engine, name).body) == message


@pytest.mark.parametrize("name", ["err_unknown_model", "completion_nonstream", "messages_api", "responses_api"])
def test_real_answers_of_other_kinds(name: str) -> None:
    """Errors and other APIs have no message."""
    assert kept(load_response("vllm", name).body) is None
