"""What is a good line, and what is said of others."""

import json

import pytest

from router_ext.dpo.check import read_line
from router_ext.dpo.pair import line_of
from tests.fakes.lines import PAIR, pair

CALLS = '[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]'
WITH_TOOLS = pair(
    {"role": "user", "content": "Hi", "name": "jo"},
    {"role": "assistant", "content": "", "tool_calls": CALLS},
    {"role": "tool", "content": "2", "tool_call_id": "c1"},
)
MESSAGE_FORM = "is not an object of role, content, name, tool_calls, tool_call_id with text in each field"


def _changed(**fields: object) -> bytes:
    return json.dumps(json.loads(line_of(PAIR)) | fields).encode() + b"\n"


@pytest.mark.parametrize("good", [PAIR, WITH_TOOLS])
def test_a_line_that_the_router_wrote_is_good(good: object) -> None:
    """And reads back as the pair."""
    assert read_line(line_of(good) + b"\n") == good  # type: ignore[arg-type]


@pytest.mark.parametrize("timestamp", ["2023-11-14T22:13:20.250Z", "2023-11-14T22:13:20Z"])
def test_a_time_may_have_no_fraction(timestamp: str) -> None:
    """Both are RFC 3339."""
    read = read_line(_changed(timestamp=timestamp))
    assert not isinstance(read, str)
    assert int(read.timestamp) == 1_700_000_000


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (line_of(PAIR), "the line has no end: it is torn, or still being written"),
        (b"\n", "not valid JSON in UTF-8"),
        (b'{"prompt":NaN}\n', "not valid JSON in UTF-8"),
        (b'{"prompt":"\xff"}\n', "not valid JSON in UTF-8"),
        (b"[]\n", "not a JSON object"),
        (b"{}\n", "the key 'prompt' is missing"),
        (line_of(PAIR).replace(b',"rule":"chat"', b"") + b"\n", "the key 'rule' is missing"),
        (_changed(more=1), "a key too many"),
        (
            line_of(PAIR).replace(b'"chosen":"7","rejected":"9"', b'"rejected":"9","chosen":"7"') + b"\n",
            "the keys are in another order",
        ),
        (_changed(chosen=7), "'chosen' is not a text"),
        (_changed(rejected=None), "'rejected' is not a text"),
        (_changed(reason=["schema"]), "'reason' is not a text"),
        (_changed(timestamp=1_700_000_000), "'timestamp' is not a text"),
        (_changed(timestamp="yesterdayTZ"), "'timestamp' is not a time like 2026-01-31T23:59:59.123Z"),
        (_changed(timestamp="2023-11-14T22:13:20"), "'timestamp' is not a time like 2026-01-31T23:59:59.123Z"),
        (_changed(timestamp="2023-13-14T22:13:20Z"), "'timestamp' is not a time like 2026-01-31T23:59:59.123Z"),
        (_changed(prompt="Name a prime."), "'prompt' is not a list of one or more messages"),
        (_changed(prompt=[]), "'prompt' is not a list of one or more messages"),
        (_changed(prompt=["Hi"]), f"message 1 of 'prompt' {MESSAGE_FORM}"),
        (_changed(prompt=[{"role": "user"}]), f"message 1 of 'prompt' {MESSAGE_FORM}"),
        (_changed(prompt=[{"content": "Hi", "role": "user"}]), f"message 1 of 'prompt' {MESSAGE_FORM}"),
        (_changed(prompt=[{"role": "user", "content": None}]), f"message 1 of 'prompt' {MESSAGE_FORM}"),
        (_changed(prompt=[{"role": "user", "content": "Hi", "x": "y"}]), f"message 1 of 'prompt' {MESSAGE_FORM}"),
        (
            _changed(prompt=[{"role": "user", "content": "Hi"}, {"role": "user", "content": []}]),
            f"message 2 of 'prompt' {MESSAGE_FORM}",
        ),
        (_changed(prompt=[{"role": "", "content": "Hi"}]), "message 1 of 'prompt' has no role"),
        (
            _changed(prompt=[{"role": "user", "content": "Hi", "tool_calls": "f()"}]),
            "'tool_calls' of message 1 of 'prompt' is not a list of objects in JSON",
        ),
        (
            _changed(prompt=[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "He"}]),
            "the last message of 'prompt' is the assistant's already",
        ),
    ],
)
def test_what_is_wrong_with_a_line_is_said(line: bytes, problem: str) -> None:
    """One thing, without a word of the texts."""
    assert read_line(line) == problem
