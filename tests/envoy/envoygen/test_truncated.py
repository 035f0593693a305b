"""What a client gets of a stream that ends early, and which answers are no such streams."""

import asyncio
import gzip
import json
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientPayloadError, web
from openai import APIError, AsyncOpenAI

from tests.envoy.envoygen.fake_processor import FakeProcessor, Plan
from tests.envoy.envoygen.raw_backend import CHUNKED, CUT, EVENTS, LAST_CHUNK, RawBackend, chunk
from tests.envoy.envoygen.stand import FakeBackend, Stand, eventually, stand
from tests.envoy.envoygen.streams import CHAT, COMPLETIONS, MESSAGES, RESPONSES, TO_A, end_of, streams

TEXT = b'data: {"choices":[{"index":0,"delta":{"content":"The total is 1"}}]}\n\n'
DONE = b"data: [DONE]\n\n"
OBJECT = b'{"message":"The backend ended the stream early.","type":"api_error","param":null,"code":"stream_truncated"}'
CHOICES_END = b'\n\ndata: {"error":' + OBJECT + b"}\n\ndata: [DONE]\n\n"
TYPED_END = b'\n\nevent: error\ndata: {"type":"error","error":' + OBJECT + b"}\n\n"
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is the client that speaks HTTP/2")


@dataclass(slots=True)
class HoldingProcessor(FakeProcessor):
    """Lets an answer pass only after ``go_on``: until then Envoy holds its headers."""

    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def Process(self, requests: AsyncIterator[Any], context: object) -> AsyncIterator[Any]:  # noqa: N802
        """The ext_proc stream."""

        async def held() -> AsyncIterator[Any]:
            async for request in requests:
                if request.HasField("response_headers"):
                    await self.go_on.wait()
                yield request

        async for reply in FakeProcessor.Process(self, held(), context):
            yield reply


@pytest.mark.parametrize(
    ("path", "end"),
    [(CHAT, CHOICES_END), (COMPLETIONS, CHOICES_END), (RESPONSES, TYPED_END), (MESSAGES, TYPED_END)],
)
async def test_a_truncated_stream_ends_with_an_error_event(path: str, end: bytes, tmp_path: Path) -> None:
    """In the shape of its API; the blank line before it ends an event that the backend left open."""
    async with streams(tmp_path) as s:
        for body in (TEXT, TEXT[:-1], b"event: x\ndata: {}", TEXT[:20], b"\r\n", b""):
            assert await s.send([body], path) == body + end
        assert await s.ends(6) == ["truncated"] * 6


@pytest.mark.parametrize("pieces", [[TEXT], [TEXT[:-1]], [TEXT, TEXT], []], ids=["event", "open", "two", "none"])
async def test_the_openai_client_raises_an_error(pieces: list[bytes], tmp_path: Path) -> None:
    """After it has handed out what came before."""
    async with streams(tmp_path) as s:
        s.paced.pieces, s.paced.received = pieces, 1_000_000
        client = AsyncOpenAI(base_url=s.stand.url + "/v1", api_key="k", max_retries=0)
        answer = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "x"}], stream=True
        )
        contents = [(await anext(answer)).choices[0].delta.content for _ in pieces]
        with pytest.raises(APIError, match="ended the stream early") as raised:
            await anext(answer)
        await client.close()
    assert contents == ["The total is 1"] * len(pieces)
    assert raised.value.code == "stream_truncated"


FRAMINGS = {
    "chunks in one packet": [CHUNKED + chunk(TEXT) + chunk(TEXT) + LAST_CHUNK],
    "last chunk alone": [CHUNKED + chunk(TEXT), chunk(TEXT), LAST_CHUNK],
    "last chunk with data": [CHUNKED + chunk(TEXT), chunk(TEXT) + LAST_CHUNK],
    "length": [EVENTS + b"content-length: %d\r\n\r\n" % (2 * len(TEXT)) + TEXT, TEXT],
    "trailers": [CHUNKED + chunk(TEXT), chunk(TEXT) + b"0\r\nx-a: b\r\n\r\n"],
    "end of connection": [EVENTS + b"connection: close\r\n\r\n" + TEXT, TEXT],
}


@pytest.mark.parametrize("pieces", FRAMINGS.values(), ids=FRAMINGS)
@pytest.mark.parametrize("http", ["--http1.1", "--http2-prior-knowledge"])
@needs_curl
async def test_however_the_stream_is_framed_its_new_end_arrives(pieces: list[bytes], http: str, tmp_path: Path) -> None:
    """The client sees an answer that ends in order, over HTTP/1.1 and HTTP/2."""
    backend, processor = _raw(pieces), FakeProcessor(TO_A)
    async with backend.serving(), stand(tmp_path, unstarted=(backend.place,), processor=processor) as s:
        assert await _curl(s, http) == (0, TEXT + TEXT + CHOICES_END)
        assert await _ends(s, 1) == ["truncated"]


@pytest.mark.parametrize("pieces", FRAMINGS.values(), ids=FRAMINGS)
@pytest.mark.parametrize("http", ["--http1.1", "--http2-prior-knowledge"])
@needs_curl
async def test_a_stream_that_ends_while_its_headers_are_held_arrives_whole(
    pieces: list[bytes], http: str, tmp_path: Path
) -> None:
    """A slow processor: the length that Envoy's Lua sets with the last piece must not reach the client."""
    backend, processor = _raw(pieces), HoldingProcessor(TO_A)
    held = stand(tmp_path, unstarted=(backend.place,), processor=processor, message_timeout_s=20.0)
    async with backend.serving(), held as s:
        asking = asyncio.create_task(_curl(s, http))
        await eventually(lambda: s.envoy.stat("cluster.backend-a.upstream_rq_completed") == 1, "headers")
        await eventually(lambda: s.envoy.stat("cluster.backend-a.upstream_rq_active") == 0, "the backend's end")
        processor.go_on.set()
        assert await asking == (0, TEXT + TEXT + CHOICES_END)


CUTS = [
    (TEXT, ""),
    (b'data: {"error":{"code":503}}\n\n', "error"),
    (b'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n', "whole"),
]


@pytest.mark.parametrize(("seen", "end"), CUTS, ids=["text", "error", "last word"])
async def test_of_a_stream_that_is_cut_off_only_what_was_seen_counts(seen: bytes, end: str, tmp_path: Path) -> None:
    """Envoy's flags tell of the cut; no event is added, and the client's stream is cut off too."""
    backend, processor = RawBackend([CHUNKED + chunk(seen), CUT]), FakeProcessor(TO_A)
    async with backend.serving(), stand(tmp_path, unstarted=(backend.place,), processor=processor) as s:
        async with s.client.post(s.url + CHAT, data=b"{}") as answer:
            assert await answer.content.readexactly(len(seen)) == seen
            backend.go_on.release()
            with pytest.raises(ClientPayloadError):
                await answer.content.read()
        assert await _ends(s, 1) == [end]
    assert processor.log_entries[0].common_properties.response_flags.ByteSize() > 0


async def test_a_stream_that_the_client_leaves_is_not_truncated(tmp_path: Path) -> None:
    """It did not end."""
    backend, processor = RawBackend([CHUNKED + chunk(TEXT), LAST_CHUNK]), FakeProcessor(TO_A)
    async with backend.serving(), stand(tmp_path, unstarted=(backend.place,), processor=processor) as s:
        async with s.client.post(s.url + CHAT, data=b"{}") as answer:
            assert await answer.content.readexactly(len(TEXT)) == TEXT
            answer.close()
        assert await _ends(s, 1) == [""]
        backend.go_on.release()


def _answer(content_type: str = "text/event-stream", **options: Any) -> web.Response:
    headers = {"content-type": content_type} | options.pop("headers", {})
    return web.Response(body=options.pop("body", TEXT), headers=headers, **options)


UNJUDGED = {
    "a path of no inference API": ("POST", "/v1/events", _answer()),
    "a path below one": ("POST", CHAT + "/x", _answer()),
    "embeddings": ("POST", "/v1/embeddings", _answer()),
    "a GET": ("GET", CHAT, _answer()),
    "another status": ("POST", CHAT, _answer(status=500)),
    "JSON": ("POST", CHAT, _answer("application/json", body=b'{"choices":[]}')),
    "a compressed stream": (
        "POST",
        CHAT,
        _answer(body=gzip.compress(TEXT, mtime=0), headers={"content-encoding": "gzip"}),
    ),
}


@pytest.mark.parametrize(("method", "path", "response"), UNJUDGED.values(), ids=UNJUDGED)
async def test_other_answers_are_not_judged_and_not_changed(
    method: str, path: str, response: web.Response, tmp_path: Path
) -> None:
    """They keep their length, too."""
    body, processor = response.body, FakeProcessor(TO_A)
    async with stand(tmp_path, FakeBackend("a", answer=lambda _: response), processor=processor) as s:
        async with s.client.request(method, s.url + path, auto_decompress=False) as answer:
            assert await answer.read() == body
        assert await _ends(s, 1) == [""]


async def test_the_answer_to_a_head_request_passes(tmp_path: Path) -> None:
    """It has the headers of a stream and no body."""
    backend, processor = FakeBackend("a", answer=lambda _: _answer()), FakeProcessor(TO_A)
    async with stand(tmp_path, backend, processor=processor) as s:
        async with s.client.head(s.url + CHAT) as answer:
            assert (answer.status, await answer.read()) == (200, b"")
        assert await _ends(s, 1) == [""]


async def test_an_answer_without_any_body_is_truncated(tmp_path: Path) -> None:
    """Length 0: there is no piece to which an event could be added."""
    backend, processor = FakeBackend("a", answer=lambda _: _answer(body=b"")), FakeProcessor(TO_A)
    async with stand(tmp_path, backend, processor=processor) as s:
        assert (await s.post(CHAT)).body == b""
        assert await _ends(s, 1) == ["truncated"]


async def test_the_path_is_the_clients(tmp_path: Path) -> None:
    """A backend whose paths are others is judged by what the client asked for."""
    plan = Plan({"x-kronaxis-cluster": "backend-a", ":path": "/v1beta/openai/chat"})
    async with streams(tmp_path, FakeProcessor(plan)) as s:
        assert await s.send([TEXT], CHAT) == TEXT + CHOICES_END
        assert await s.send([TEXT + DONE], CHAT) == TEXT + DONE
        assert await s.ends(2) == ["truncated", "whole"]


async def test_without_a_processor_a_truncated_stream_ends_with_an_error_event_too(tmp_path: Path) -> None:
    """Envoy alone adds it."""
    async with stand(tmp_path, FakeBackend("a", answer=lambda _: _answer())) as s:
        assert (await s.post(CHAT)).body == TEXT + CHOICES_END


async def test_counts_are_read_from_a_truncated_stream(tmp_path: Path) -> None:
    """What was seen so far is known."""
    usage = b"data: " + json.dumps({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}).encode()
    async with streams(tmp_path) as s:
        await s.send([usage + b"\n\n"])
        assert await s.ends(1) == ["truncated"]
        metadata = s.processor.log_entries[0].common_properties.metadata.filter_metadata["router_ext.usage"]
    assert (metadata["prompt_tokens"], metadata["completion_tokens"]) == (3, 2)


def _raw(pieces: Sequence[bytes | None]) -> RawBackend:
    return RawBackend(pieces, asyncio.Semaphore(len(pieces)))


async def _ends(s: Stand, count: int) -> list[str]:
    await eventually(lambda: len(s.processor.log_entries) == count, "access log entries")
    assert s.envoy.stat("http.ingress.lua.errors") == 0
    return [end_of(entry) for entry in s.processor.log_entries]


async def _curl(s: Stand, http: str) -> tuple[int, bytes]:
    """The exit code of curl, 0 when the answer came in order, and the body."""
    command = ["curl", "-s", "-N", "--max-time", "20", http, "--data-binary", "{}", s.url + CHAT]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    body, _ = await process.communicate()
    return process.returncode or 0, body
