"""Time limits and body sizes."""

import asyncio
import shutil
import time
from pathlib import Path

import pytest

from tests.envoy.envoygen.fake_processor import FakeProcessor, Plan
from tests.envoy.envoygen.stand import FakeBackend, eventually, stand

CHAT = "/v1/chat/completions"
HEADROOM = 65_536
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is the client that speaks HTTP/2")
TO_A = {"x-kronaxis-cluster": "backend-a"}


async def test_the_processors_timeout_bounds_the_whole_request(tmp_path: Path) -> None:
    """``x-envoy-upstream-rq-timeout-ms`` from the processor ends a slow plain request with a 504."""
    processor = FakeProcessor(Plan(TO_A | {"x-envoy-upstream-rq-timeout-ms": "300"}))
    async with stand(tmp_path, FakeBackend("a", delay_s=5), processor=processor) as s:
        started = time.monotonic()
        answer = await s.post(CHAT)
        took_s = time.monotonic() - started
    assert (answer.status, answer.error["code"]) == (504, "upstream_timeout")
    assert 0.25 < took_s < 1.5


async def test_without_that_header_an_answer_may_take_its_time(tmp_path: Path) -> None:
    """No route timeout of Envoy's own applies."""
    async with stand(tmp_path, FakeBackend("a", delay_s=0.6), processor=FakeProcessor(Plan(TO_A))) as s:
        assert (await s.post(CHAT)).status == 200


async def test_silence_longer_than_the_idle_timeout_ends_a_request(tmp_path: Path) -> None:
    """``stream_idle_timeout`` bounds the wait between two pieces: 504 before the answer began."""
    backend = FakeBackend("a", delay_s=5)
    async with stand(tmp_path, backend, processor=FakeProcessor(Plan(TO_A)), stream_idle_timeout_s=0.4) as s:
        answer = await s.post(CHAT)
    assert (answer.status, answer.error["code"]) == (504, "upstream_timeout")


@needs_curl
@pytest.mark.parametrize(("over", "status"), [(0, 200), (1, 413)])
async def test_an_http1_body_is_taken_up_to_the_limit_and_its_headroom(over: int, status: int, tmp_path: Path) -> None:
    """64 KiB above ``max_body_bytes`` still reach the processor, which knows the exact limit; more is Envoy's 413."""
    assert await _upload("--http1.1", 2_000_000, over, tmp_path) == (status, status == 200)


@needs_curl
@pytest.mark.parametrize(("over", "status"), [(0, 200), (1_000_000, 413)])
async def test_an_http2_body_is_taken_up_to_the_limit_and_its_headroom(over: int, status: int, tmp_path: Path) -> None:
    """The same for a limit above the stream window of 16 MiB, but for some frames that may already be on their way."""
    assert await _upload("--http2-prior-knowledge", 20_000_000, over, tmp_path) == (status, status == 200)


@needs_curl
async def test_the_least_limit_for_http2_is_the_stream_window(tmp_path: Path) -> None:
    """A smaller ``max_body_bytes`` is left to the processor, which therefore must take messages of 16 MiB."""
    assert await _upload("--http2-prior-knowledge", 2_000_000, 1_000_000, tmp_path) == (200, True)


async def test_connections_above_the_maximum_are_closed(tmp_path: Path) -> None:
    """``max_connections`` counts clients; the admin and egress listeners stay reachable."""
    async with stand(tmp_path, FakeBackend("a"), max_connections=1) as s:
        _, first = await asyncio.open_connection("127.0.0.1", s.config.server.port)
        first.write(b"GET / HTTP/1.1\r\nhost: x\r\n")
        await eventually(lambda: s.envoy.stat("http.ingress.downstream_cx_active") == 1, "connected")
        reader, second = await asyncio.open_connection("127.0.0.1", s.config.server.port)
        assert await reader.read() == b""
        async with s.client.get(s.egress) as answer:
            assert answer.status == 404
        first.close()
        second.close()


async def _upload(http: str, limit: int, over: int, directory: Path) -> tuple[int, bool]:
    """Posts ``over`` bytes more than the limit and its headroom with curl, which speaks HTTP/2 without TLS.

    Gives the status of the answer, and whether the processor had the whole body.
    """
    body = directory / "body"
    size = limit + HEADROOM + over
    body.write_bytes(b"x" * size)
    processor = FakeProcessor(Plan(TO_A))
    async with stand(directory, FakeBackend("a"), processor=processor, max_body_bytes=limit) as s:
        options = ["-s", "-o", str(directory / "answer"), http, "--data-binary", f"@{body}", s.url + CHAT]
        curl = await asyncio.create_subprocess_exec("curl", *options)
        await curl.wait()
    body.unlink()
    (entry,) = s.envoy.access_log()
    return entry["status"], processor.seen_bodies == [size]
