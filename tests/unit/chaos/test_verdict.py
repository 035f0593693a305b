"""What counts as a good answer."""

import json

import pytest

from benchmarks.chaos.verdict import fault_of_plain, fault_of_stream

TWENTY = "one two three four five six seven eight nine ten " * 2
DONE = b"data: [DONE]\n\n"


def plain(text: str = TWENTY, finish: str | None = "length") -> bytes:
    """A chat completion."""
    return json.dumps({"choices": [{"message": {"content": text}, "finish_reason": finish}]}).encode()


def event(text: str | None, finish: str | None = None) -> bytes:
    """One event of a streamed chat completion."""
    return b"data: %s\n\n" % json.dumps({"choices": [{"delta": {"content": text}, "finish_reason": finish}]}).encode()


def test_a_complete_plain_answer_is_good() -> None:
    """JSON, a finish reason and twenty words."""
    assert fault_of_plain(plain()) is None


@pytest.mark.parametrize("body", [b"", plain()[:-5], b"[]", b'{"choices": []}', b'{"error": {"code": "x"}}', b"null"])
def test_what_is_no_chat_completion_is_a_failure(body: bytes) -> None:
    """Whatever its status says."""
    assert fault_of_plain(body) == "no chat completion"


def test_a_plain_answer_without_a_finish_reason_is_a_failure() -> None:
    """The engine had not ended."""
    assert fault_of_plain(plain(finish=None)) == "no finish_reason"


@pytest.mark.parametrize(
    ("words", "fault"), [(19, "19 words instead of 20"), (20, None), (21, "21 words instead of 20")]
)
def test_every_word_must_arrive_once(words: int, fault: str | None) -> None:
    """Fewer mean a loss, more a repetition."""
    assert fault_of_plain(plain("word " * words)) == fault
    assert fault_of_stream(event("word") + event(" word" * (words - 1), "length") + DONE) == fault


def test_a_complete_stream_is_good() -> None:
    """Also with a role-only event, a usage event and a comment in it."""
    usage = b'data: {"choices": [], "usage": {"completion_tokens": 20}}\n\n'
    assert fault_of_stream(event(None) + event(TWENTY) + event("", "length") + usage + DONE) is None


@pytest.mark.parametrize("tail", [b"", b"data: [DONE]", b"data: [DONE]\n"])
def test_a_stream_must_end_with_a_whole_end_marker(tail: bytes) -> None:
    """A cut in the middle of the marker is a cut."""
    assert fault_of_stream(event(TWENTY, "length") + tail) == "no [DONE]"


def test_a_stream_that_goes_on_after_its_end_marker_is_a_failure() -> None:
    """The marker is the last event."""
    assert fault_of_stream(event(TWENTY) + DONE + event("", "length")) == "no [DONE]"


def test_a_stream_without_a_finish_reason_is_a_failure() -> None:
    """An end marker alone does not make it whole."""
    assert fault_of_stream(event(TWENTY) + DONE) == "no finish_reason"


def test_an_error_event_is_a_failure_named_by_its_code() -> None:
    """Even where an end marker follows."""
    error = b'event: error\ndata: {"type": "error", "error": {"code": "stream_truncated", "type": "api_error"}}\n\n'
    assert fault_of_stream(event("one") + error + DONE) == "error event stream_truncated"


def test_an_error_event_without_a_code_is_named_by_its_type() -> None:
    """As engines send them."""
    error = b'data: {"error": {"code": null, "type": "EngineDead"}}\n\n'
    assert fault_of_stream(error + DONE) == "error event EngineDead"


@pytest.mark.parametrize("body", [b'data: {"choices": [\n\n' + DONE, b"data: 7\n\n" + DONE, b"data: {}{}\n\n"])
def test_an_event_that_is_no_json_object_is_a_failure(body: bytes) -> None:
    """A stream was cut within it, or two were mixed."""
    assert fault_of_stream(body) == "broken event"
