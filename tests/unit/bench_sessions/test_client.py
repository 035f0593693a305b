"""When a turn is acknowledged, and when it is to be sent again."""

import asyncio
import json

from benchmarks.sessions.client import RETRY_S, Failed, Kept, Progress, read_try, unexpected

TEXT = " ".join(["word"] * 20)
KEPT = {"x-kronaxis-session-id": "sess_1"}


def plain(text: str = TEXT) -> bytes:
    """A ``chat.completion``."""
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return json.dumps({"choices": [choice]}).encode()


def streamed(*, done: bool = True) -> bytes:
    """The events of an answer, each with half of the text."""
    half = len(TEXT) // 2
    deltas = [({"content": TEXT[:half]}, None), ({"content": TEXT[half:]}, "stop")]
    chunks = [{"choices": [{"delta": delta, "finish_reason": finish}]} for delta, finish in deltas]
    events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return "".join([*events, "data: [DONE]\n\n" if done else ""]).encode()


def test_a_whole_plain_answer_is_acknowledged() -> None:
    """Its session comes from the headers."""
    assert read_try(200, KEPT, plain(), stream=False) == Kept("sess_1", TEXT)


def test_a_whole_stream_is_acknowledged() -> None:
    """Its text is that of all chunks."""
    assert read_try(200, KEPT, streamed(), stream=True) == Kept("sess_1", TEXT)


def test_a_stream_without_its_end_is_not_acknowledged() -> None:
    """All of its words had come."""
    assert read_try(200, KEPT, streamed(done=False), stream=True) == Failed("no [DONE]")


def test_a_stream_with_an_error_event_is_not_acknowledged() -> None:
    """That is how the router says that a turn was not kept."""
    error = b'data: {"error":{"code":"session_store_unavailable"}}\n\ndata: [DONE]\n\n'
    seen = read_try(200, KEPT, streamed(done=False) + error, stream=True)
    assert seen == Failed("error event session_store_unavailable")


def test_a_plain_answer_that_was_cut_is_not_acknowledged() -> None:
    """It is no JSON."""
    assert read_try(200, KEPT, plain()[:-10], stream=False) == Failed("no chat completion")


def test_a_good_answer_without_a_session_is_not_acknowledged() -> None:
    """Nobody kept it."""
    assert read_try(200, {}, plain(), stream=False) == Failed("no session id")


def test_a_refusal_says_when_to_come_again() -> None:
    """``Retry-After`` is in seconds."""
    body = b'{"error":{"code":"router_unavailable"}}'
    seen = read_try(503, {"retry-after": "2"}, body, stream=False)
    assert seen == Failed("status 503 router_unavailable", 2.0)


def test_a_refusal_without_retry_after_is_tried_again_soon() -> None:
    """Its body may be anything."""
    assert read_try(500, {}, b"oops", stream=False) == Failed("status 500 oops", RETRY_S)


def test_a_503_and_a_broken_connection_are_expected_of_a_kill() -> None:
    """Anything else is not."""
    expected = {"status 503 router_unavailable": 3, "ClientPayloadError": 2, "ServerDisconnectedError": 1}
    assert unexpected(expected) == 0
    assert unexpected({**expected, "status 500 internal_error": 4, "no session id": 1}) == 5


def test_a_mark_is_reached_with_its_turn_and_not_before() -> None:
    """Both sides of the boundary."""

    async def marks() -> tuple[bool, bool]:
        progress = Progress()
        waiting = asyncio.create_task(progress.reached(2))
        await asyncio.sleep(0)
        progress.acknowledge(0.1)
        await asyncio.sleep(0)
        before = waiting.done()
        progress.acknowledge(0.1)
        await waiting
        return before, waiting.done()

    assert asyncio.run(marks()) == (False, True)
