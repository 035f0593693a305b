"""Reading answers that the router passes on itself."""

import pytest

from router_ext.model.outcome import StreamEnd, Usage
from router_ext.stream.answer import StreamReader, UsageReader

ROLE = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}\n\n'
FINISH = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"


def read(*pieces: bytes) -> StreamReader:
    """A reader that was fed the pieces."""
    reader = StreamReader()
    for piece in pieces:
        reader.feed(piece)
    return reader


def test_a_role_without_content_is_no_token_and_no_end() -> None:
    """Nothing is known of the stream yet."""
    reader = read(ROLE)
    assert (reader.has_token, reader.end) == (False, StreamEnd.UNKNOWN)


def test_the_first_content_is_a_token() -> None:
    """The stream goes on."""
    reader = read(ROLE, TOKEN)
    assert (reader.has_token, reader.end) == (True, StreamEnd.UNKNOWN)


@pytest.mark.parametrize(
    "last",
    [
        DONE,
        FINISH,
        b'event: response.completed\ndata: {"type":"response.completed","response":{}}\n\n',
        b'data: {"type":"response.incomplete"}\n\n',
        b'event: message_stop\ndata: {"type": "message_stop"}\n\n',
    ],
)
def test_a_last_word_makes_a_stream_whole(last: bytes) -> None:
    """Every API has its own."""
    assert read(TOKEN, last).end is StreamEnd.WHOLE


@pytest.mark.parametrize(
    "event",
    [
        b'data: {"error":{"message":"engine overloaded","code":503}}\n\n',
        b'data:{ "error" : "overloaded"}\n\n',
        b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n',
        b'data: {"type":"response.failed","response":{}}\n\n',
        b'data: {"id":"x","choices":[],"error":{"code":502}}\n\n',
        b'data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"error"}]}\n\n',
    ],
)
def test_an_error_event_fails_a_stream_for_good(event: bytes) -> None:
    """A ``[DONE]`` after it changes nothing."""
    assert read(ROLE, event, DONE).end is StreamEnd.ERROR


@pytest.mark.parametrize(
    "text",
    [
        rb"\"finish_reason\":\"stop\"",
        rb"{\"error\":{}}",
        rb"data: [DONE]",
        rb"\"usage\":{\"prompt_tokens\":7}",
    ],
)
def test_generated_text_that_looks_like_structure_tells_nothing(text: bytes) -> None:
    """A quote inside a JSON string is escaped."""
    reader = read(b'data: {"choices":[{"delta":{"content":"' + text + b'"},"finish_reason":null}]}\n\n')
    assert (reader.has_token, reader.end, reader.usage) == (True, StreamEnd.UNKNOWN, None)


def test_a_null_error_is_no_error() -> None:
    """Some servers write the field into every event."""
    event = b'data: {"error":null,"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
    assert read(event).end is StreamEnd.UNKNOWN


STREAM = TOKEN + FINISH + b'data: {"choices":[],"usage":{"prompt_tokens":12,"completion_tokens":3}}\n\n' + DONE


def test_any_split_tells_the_same() -> None:
    """The chunking of the network means nothing."""
    for at in range(len(STREAM)):
        reader = read(STREAM[:at], STREAM[at:])
        assert (reader.has_token, reader.end, reader.usage) == (True, StreamEnd.WHOLE, Usage(12, 3))


def test_the_counts_of_every_api_are_read() -> None:
    """The words differ, the last figure counts. The messages API counts cached tokens beside those of the prompt."""
    reader = UsageReader()
    reader.feed(b'{"usage":{"input_tokens":5,"output_tokens":1,"cache_read_input_tokens":2}}')
    reader.feed(b'{"usage":{"output_tokens": 9}}')
    assert reader.usage == Usage(7, 9, 2)


def test_a_count_that_no_engine_can_mean_is_not_read() -> None:
    """A number of more than 15 digits is no count of tokens."""
    reader = UsageReader()
    reader.feed(b'{"prompt_tokens":' + b"9" * 4000 + b"}")
    assert reader.usage is None
