"""Token counts that Envoy reads out of answers, and that reading them harms no answer."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from tests.envoy.envoygen.fake_processor import FakeProcessor, Plan
from tests.envoy.envoygen.stand import FakeBackend, eventually, stand

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
MESSAGES = "/v1/messages"
TO_A = Plan({"x-kronaxis-cluster": "backend-a"})
DONE = b"data: [DONE]\n\n"

CHAT_USAGE = {"usage": {"prompt_tokens": 11, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 4}}}
RESPONSES_USAGE = {"usage": {"input_tokens": 11, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 7}}
MESSAGES_USAGE = {"usage": {"input_tokens": 11, "cache_read_input_tokens": 4, "output_tokens": 7}}
ALL_COUNTS = {"prompt_tokens": 11, "completion_tokens": 7, "cached_tokens": 4}
BESIDE = {"prompt_tokens": 11, "completion_tokens": 7, "cache_read_tokens": 4}
"""The messages API counts cached tokens beside the prompt's: they have a key of their own."""


def _sse(*events: object) -> list[bytes]:
    return [f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n".encode() for event in events]


def _answering(text: str, content_type: str = "application/json") -> FakeBackend:
    return FakeBackend("a", answer=lambda _: web.Response(text=text, content_type=content_type))


def _streaming(pieces: list[bytes]) -> FakeBackend:
    async def stream(_: web.Request) -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return FakeBackend("a", stream=stream)


async def _exchange(logs: Path, backend: FakeBackend, path: str = CHAT) -> tuple[bytes, dict[str, float]]:
    """The body that a client gets, and the counts in the access log entry of the exchange."""
    processor = FakeProcessor(TO_A)
    async with stand(logs, backend, processor=processor) as s:
        answer = await s.post(path)
        assert answer.status == 200
        await eventually(lambda: bool(processor.log_entries), "access log entry")
        assert s.envoy.stat("http.ingress.lua.errors") == 0
    metadata = processor.log_entries[0].common_properties.metadata.filter_metadata
    read = dict(metadata["router_ext.usage"].items()) if "router_ext.usage" in metadata else {}
    return answer.body, {name: value for name, value in read.items() if name != "stream_end"}


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [(CHAT_USAGE, ALL_COUNTS), (RESPONSES_USAGE, ALL_COUNTS), (MESSAGES_USAGE, BESIDE)],
    ids=["chat", "responses", "messages"],
)
async def test_a_plain_answer_is_counted(answer: object, wanted: dict[str, int], tmp_path: Path) -> None:
    """Every API's words end under the same keys; a character set in the content type changes nothing."""
    text = json.dumps(answer)
    assert await _exchange(tmp_path, _answering(text)) == (text.encode(), wanted)


@pytest.mark.parametrize(
    ("path", "events", "wanted"),
    [
        (CHAT, _sse({"choices": [], "usage": None}, CHAT_USAGE, "[DONE]"), ALL_COUNTS),
        (RESPONSES, _sse({"type": "response.completed", "response": RESPONSES_USAGE}), ALL_COUNTS),
        (
            MESSAGES,
            _sse(
                {"type": "message_start", "message": {"usage": {"input_tokens": 11, "cache_read_input_tokens": 4}}},
                {"type": "message_delta", "usage": {"output_tokens": 3}},
                {"type": "message_delta", "usage": {"output_tokens": 7}},
                {"type": "message_stop"},
            ),
            BESIDE,
        ),
    ],
    ids=["chat", "responses", "messages"],
)
async def test_a_streamed_answer_is_counted(
    path: str, events: list[bytes], wanted: dict[str, int], tmp_path: Path
) -> None:
    """Where a stream tells a count more than once the last one holds."""
    body, counts = await _exchange(tmp_path, _streaming(events), path)
    assert (body, counts) == (b"".join(events), wanted)


async def test_counts_are_found_wherever_the_answer_is_cut(tmp_path: Path) -> None:
    """One byte a piece: keys and numbers are split everywhere."""
    text = json.dumps({"choices": [{"text": "x" * 50}], **CHAT_USAGE}).encode() + b"\n\n" + DONE
    backend = _streaming([text[i : i + 1] for i in range(len(text))])
    assert await _exchange(tmp_path, backend) == (text, ALL_COUNTS)


async def test_generated_text_is_not_counted(tmp_path: Path) -> None:
    """A model that writes about token counts writes escaped quotes."""
    text = json.dumps({"choices": [{"message": {"content": '{"prompt_tokens": 999}'}}]})
    assert await _exchange(tmp_path, _answering(text)) == (text.encode(), {})


async def test_an_answer_without_counts_has_none(tmp_path: Path) -> None:
    """A missing count is missing, not 0; a null is missing too."""
    text = '{"usage": {"prompt_tokens": 5, "completion_tokens": null}}'
    assert await _exchange(tmp_path, _answering(text)) == (text.encode(), {"prompt_tokens": 5})


async def test_a_plain_answer_beyond_every_buffer_passes(tmp_path: Path) -> None:
    """Embeddings of 40 MB pass (the buffer limit is 32 MiB and 64 KiB), and their count at the end is found."""
    text = json.dumps({"data": "0" * 40_000_000, "usage": {"prompt_tokens": 9, "total_tokens": 9}})
    body, counts = await _exchange(tmp_path, _answering(text), "/v1/embeddings")
    assert body == text.encode()
    assert counts == {"prompt_tokens": 9}


async def test_no_event_data_harms_the_proxy(tmp_path: Path) -> None:
    """Scalars, broken and deeply nested JSON pass unchanged, and the counts after them are found."""
    events = _sse("1", "null", "true", '"x"', "[]", "", "{", "[" * 10_000, CHAT_USAGE, "[DONE]")
    assert await _exchange(tmp_path, _streaming(events)) == (b"".join(events), ALL_COUNTS)


@pytest.mark.parametrize(
    ("text", "content_type"), [("not json", "application/json"), ("", "application/json"), ("12", "text/plain")]
)
async def test_an_answer_that_is_no_json_passes(text: str, content_type: str, tmp_path: Path) -> None:
    """Whatever the content type promises."""
    assert await _exchange(tmp_path, _answering(text, content_type)) == (text.encode(), {})


async def test_a_stream_is_not_delayed(tmp_path: Path) -> None:
    """Each event reaches the client before the next one is written."""
    received: list[bytes] = []

    async def stream(_: web.Request) -> AsyncIterator[bytes]:
        for number in range(3):
            await eventually(lambda expected=number: len(received) == expected, "earlier events", 5)  # type: ignore[misc]
            yield f"data: {number}\n\n".encode()
        yield DONE

    async with (
        stand(tmp_path, FakeBackend("a", stream=stream), processor=FakeProcessor(TO_A)) as s,
        s.client.post(s.url + CHAT, data=b"{}") as answer,
    ):
        async for piece in answer.content.iter_any():
            received.append(piece)  # noqa: PERF401 - the backend waits for each piece to be here
    assert received[:2] == [b"data: 0\n\n", b"data: 1\n\n"]
    assert b"".join(received[2:]) == b"data: 2\n\n" + DONE
