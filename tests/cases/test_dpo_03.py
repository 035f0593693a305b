"""DPO-03: chat data had fields of mixed types, which loaders with fixed types refuse."""

import json

from router_ext.dpo.pair import Unfit, line_of, prompt_of
from tests.fakes.lines import pair

STRING: list[dict[str, object]] = [{"role": "user", "content": "Hi"}]
PARTS: list[dict[str, object]] = [
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
]
IMAGE = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}}]}]
TOOLS: list[dict[str, object]] = [
    {"role": "user", "content": "What time is it?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "clock", "arguments": '{"zone": "UTC"}'}},
            {"id": "c2", "type": "function", "function": {"name": "clock", "arguments": {"zone": ["UTC"]}}},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "noon"}]},
]


def test_every_field_of_every_message_is_a_string() -> None:
    """Content as string or parts or null, arguments as text or object: one type each."""
    for messages in (STRING, PARTS, TOOLS):
        prompt = prompt_of(messages)
        assert not isinstance(prompt, Unfit)
        written = json.loads(line_of(pair(*prompt)))["prompt"]
        assert [message["role"] for message in written] == [message["role"] for message in messages]
        assert {type(value) for message in written for value in message.values()} == {str}


def test_tool_calls_and_results_are_all_there() -> None:
    """The calls as JSON, their arguments as they were sent."""
    prompt = prompt_of(TOOLS)
    assert not isinstance(prompt, Unfit)
    assert json.loads(prompt[1]["tool_calls"]) == TOOLS[1]["tool_calls"]
    assert prompt[2] == {"role": "tool", "content": "noon", "tool_call_id": "c1"}


def test_a_pair_with_an_image_is_left_out_for_a_reason() -> None:
    """So that no file has images in base64."""
    assert prompt_of(IMAGE) is Unfit.MEDIA
