"""Server-sent events from bytes."""

import pytest

from router_ext.stream.sse import SseReader, WholeEvents, holds_token


def _events(*chunks: bytes, max_line: int = 1 << 20) -> list[bytes]:
    reader = SseReader(max_line)
    return [event for chunk in chunks for event in reader.feed(chunk)]


@pytest.mark.parametrize(
    ("wire", "events"),
    [
        (b"data: x\n\n", [b"x"]),
        (b"data: x\r\r", [b"x"]),
        (b"data: x\r\n\r\n", [b"x"]),
        (b"data: x\r\n\n", [b"x"]),
        (b"data:x\n\n", [b"x"]),
        (b"data:  x\n\n", [b" x"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"data: a\n\n\n\ndata: b\n\n", [b"a", b"b"]),
        (b": comment\n\ndata: x\n\n", [b"x"]),
        (b"event: delta\nid: 7\ndata: x\nretry: 1\n\n", [b"x"]),
        (b"data:\n\n", [b""]),
        (b"data: x", []),
        (b"data: x\n", []),
        (b"datax: y\n\n", []),
        (b"", []),
    ],
)
def test_an_event_is_its_data_lines_up_to_a_blank_line(wire: bytes, events: list[bytes]) -> None:
    """Lines end at LF, CR or CRLF; one space after the colon goes; other fields and comments are passed over."""
    assert _events(wire) == events


def test_an_event_is_known_as_soon_as_its_blank_line_ends() -> None:
    """Also when that end is a CR whose LF is still to come."""
    reader = SseReader()
    assert reader.feed(b"data: x\r\n\r") == [b"x"]
    assert reader.feed(b"\n") == []
    assert reader.feed(b"data: y\n\n") == [b"y"]


def test_a_line_at_the_limit_is_read_and_a_longer_one_is_skipped() -> None:
    """The limit counts the whole line; the events around it are read."""
    reader = SseReader(max_line=10)
    assert reader.feed(b"data: 1234\n\n") == [b"1234"]
    assert reader.skipped_lines == 0
    assert reader.feed(b"data: 12345\n\ndata: x\n\n") == [b"x"]
    assert reader.skipped_lines == 1


def test_data_of_one_event_at_the_limit_is_read_and_more_is_skipped() -> None:
    """Lines without a blank one between them cannot pile up."""
    reader = SseReader(max_line=12)
    assert reader.feed(b"data:1\ndata:2\n\n") == [b"1\n2"]
    assert reader.feed(b"data:1\ndata:23\ndata:4\n\ndata:5\n\n") == [b"5"]
    assert reader.skipped_lines == 2


TOKENS = {
    "content": b'{"choices":[{"delta":{"content":"x"}}]}',
    "white space": b'{"choices":[{"delta":{"content":" "}}]}',
    "reasoning": b'{"choices":[{"delta":{"reasoning":"x"}}]}',
    "reasoning content": b'{"choices":[{"delta":{"content":null,"reasoning_content":"x"}}]}',
    "refusal": b'{"choices":[{"delta":{"refusal":"x"}}]}',
    "tool call": b'{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}',
    "function call": b'{"choices":[{"delta":{"function_call":{"name":"f"}}}]}',
    "second choice": b'{"choices":[{"delta":{}},{"delta":{"content":"x"}}]}',
    "completion": b'{"choices":[{"text":"x"}]}',
    "responses": b'{"type":"response.output_text.delta","delta":"x"}',
    "messages text": b'{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}',
    "messages thinking": b'{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"x"}}',
    "messages tool": b'{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":"{"}}',
}

NO_TOKENS = {
    "role": b'{"choices":[{"delta":{"role":"assistant","content":""}}]}',
    "null": b'{"choices":[{"delta":{"role":"assistant","content":null}}]}',
    "no tool calls": b'{"choices":[{"delta":{"tool_calls":[]}}]}',
    "finish": b'{"choices":[{"delta":{},"finish_reason":"stop"}]}',
    "null delta": b'{"choices":[{"delta":null}]}',
    "usage": b'{"choices":[],"usage":{"prompt_tokens":9}}',
    "null choices": b'{"choices":null,"usage":{}}',
    "missing choices": b'{"usage":{"prompt_tokens":9}}',
    "odd choices": b'{"choices":[null,1,"x"]}',
    "empty completion": b'{"choices":[{"text":""}]}',
    "responses created": b'{"type":"response.created","response":{}}',
    "responses empty": b'{"type":"response.output_text.delta","delta":""}',
    "messages start": b'{"type":"content_block_start","content_block":{}}',
    "messages empty": b'{"type":"content_block_delta","delta":{"type":"input_json_delta","partial_json":""}}',
    "messages stop": b'{"type":"message_delta","delta":{"stop_reason":"end_turn"}}',
    "done": b"[DONE]",
    "list": b"[]",
    "broken": b'{"choices":[',
    "empty": b"",
    "error": b'{"error":{"message":"x"}}',
}


@pytest.mark.parametrize("name", TOKENS)
def test_generated_output_is_a_token(name: str) -> None:
    """Content, reasoning, a refusal or a piece of a tool call, in each API's own shape."""
    assert holds_token(TOKENS[name])


@pytest.mark.parametrize("name", NO_TOKENS)
def test_everything_else_is_none(name: str) -> None:
    """Roles, empty content, usage and ends."""
    assert not holds_token(NO_TOKENS[name])


@pytest.mark.parametrize("blank", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_whole_events_are_given_on_and_what_has_begun_is_held(blank: bytes) -> None:
    """Several at a time, up to the end of the last whole one."""
    one, two = b"data: 1" + blank, b"event: x" + blank[: len(blank) // 2] + b"data: 2" + blank
    events = WholeEvents()
    assert events.feed(b"data: ") == b""
    assert events.rest == b"data: "
    assert events.feed(b"1" + blank + two + b"data") == one + two
    assert events.rest == b"data"
    assert events.feed(b": 3" + blank) == b"data: 3" + blank
    assert events.rest == b""


@pytest.mark.parametrize("blank", [b"\n\n", b"\r\n\r\n", b"\r\r"])
def test_a_blank_line_ends_an_event_wherever_it_is_cut(blank: bytes) -> None:
    """Down to single bytes: it is given on with the last byte of the blank line, not later."""
    wire = b"data: 1" + blank + b"data: 2" + blank
    events = WholeEvents()
    given = [events.feed(wire[at : at + 1]) for at in range(len(wire))]
    assert [piece for piece in given if piece] == [b"data: 1" + blank, b"data: 2" + blank]
    assert given[len(wire) // 2 - 1] == b"data: 1" + blank
    for at in range(len(wire) + 1):
        events = WholeEvents()
        assert events.feed(wire[:at]) + events.feed(wire[at:]) == wire


def test_an_event_at_the_limit_is_held_and_a_larger_one_is_given_on_as_it_comes() -> None:
    """Memory is bounded; after it events are whole again."""
    events = WholeEvents(max_event=10)
    assert events.feed(b"data: 1234") == b""
    assert events.feed(b"5") == b"data: 12345"
    assert (events.rest, events.feed(b"6789")) == (b"", b"")
    assert events.feed(b"\n\ndata: x") == b"6789\n\n"
    assert events.rest == b"data: x"


def test_what_is_no_event_stream_passes_at_its_end() -> None:
    """Nothing of it is lost: it is the rest."""
    events = WholeEvents()
    assert events.feed(b"{}\n") + events.feed(b"") == b""
    assert events.rest == b"{}\n"
