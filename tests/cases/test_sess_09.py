"""SESS-09: old tool results were cut in the middle of their JSON."""

import json

from tests.fakes.transcripts import envelope, sent

ROWS = [{"id": at, "name": f"Zoë \U0001f600 \\u {at}", "open": at % 2 == 0} for at in range(14_000)]
RESULT = json.dumps({"role": "tool", "tool_call_id": "c1", "content": json.dumps(ROWS)}).encode()
STORED = (
    b'{"role":"user","content":"List them."}',
    b'{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",'
    b'"function":{"name":"rows","arguments":"{}"}}]}',
    RESULT,
    b'{"role":"assistant","content":"Done."}',
)
TURN = b'{"model":"m-a","messages":[{"role":"user","content":"How many?"}]}'


def test_a_stored_message_goes_out_whole_however_large_it_is() -> None:
    """Byte for byte, so no string is cut inside an escape or a surrogate pair, and its JSON can be read."""
    assert len(RESULT) > 900_000
    body = sent(TURN, STORED)
    assert body == TURN.replace(b"[", b"[" + b",".join(STORED) + b",", 1)
    messages = envelope(body).fields["messages"]
    assert isinstance(messages, list)
    assert json.loads(messages[2]["content"]) == ROWS


def test_a_tool_result_stays_behind_its_call() -> None:
    """Nothing is dropped from the middle either."""
    messages = json.loads(sent(TURN, STORED))["messages"]
    assert [item["role"] for item in messages] == ["user", "assistant", "tool", "assistant", "user"]
    assert messages[1]["tool_calls"][0]["id"] == messages[2]["tool_call_id"]
