"""SSE-07: a stream that ends without a last word was taken for a complete answer."""

from pathlib import Path

from router_ext.extproc.access_log import record_of
from router_ext.health.failures import failure_of, succeeded
from tests.envoy.envoygen.streams import streams

TEXT = b'data: {"choices":[{"index":0,"delta":{"content":"The total is 1"}}]}\n\n'


async def test_a_stream_without_an_end_is_a_failure_and_the_client_is_told(tmp_path: Path) -> None:
    """Neither a finish reason nor ``[DONE]``: truncated, with an error event where the answer breaks off."""
    async with streams(tmp_path) as s:
        body = await s.send([TEXT])
        assert await s.ends(1) == ["truncated"]
    record = record_of(s.processor.log_entries[0])
    assert (record.status, record.flags, failure_of(record)) == (200, (), "stream_truncated")
    assert body.startswith(TEXT + b'\n\ndata: {"error":{"message":"The backend ended the stream early."')


async def test_a_stream_with_an_end_is_a_success_and_unchanged(tmp_path: Path) -> None:
    """Either of the two is enough."""
    finish = TEXT + b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    done = TEXT + b"data: [DONE]\n\n"
    async with streams(tmp_path) as s:
        assert [await s.send([body]) for body in (finish, done)] == [finish, done]
        assert await s.ends(2) == ["whole", "whole"]
    assert all(succeeded(record_of(entry)) for entry in s.processor.log_entries)
