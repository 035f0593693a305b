"""SSE-13: one chunk can hold two pieces of one tool call."""

import json

import pytest

from router_ext.stream.sse import SseReader
from tests.fakes.chat_answers import streamed

FIRST = (
    b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function",'
    b'"function":{"name":"w","arguments":""}},{"index":0,"function":{"arguments":"{\\"city\\":"}}]}}]}\n\n'
)
LAST = (
    b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\"Oslo\\"}"}}]},'
    b'"finish_reason":"tool_calls"}]}\n\n'
)
DONE = b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    "last",
    [
        LAST,
        LAST.replace(b'{"index":0,"function"', b'{"function"'),
        LAST.replace(b'{"index":0,"function"', b'{"index":0,"id":null,"type":null,"function"'),
        LAST.replace(b'"function":{', b'"function":{"name":null,'),
        LAST.replace(b'"function":{', b'"id":"","function":{"name":"",'),
    ],
    ids=["as reported", "no index", "null id", "null name", "empty id and name"],
)
def test_pieces_are_merged_by_their_index(last: bytes) -> None:
    """From the first chunk on, and whatever later pieces leave out."""
    message = streamed(*SseReader().feed(FIRST + last + DONE)).message()
    assert message is not None
    assert json.loads(message) == {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "w", "arguments": '{"city":"Oslo"}'}}],
    }
