"""SSE-08: an error event inside a 200 stream was logged as a success."""

from pathlib import Path

import pytest

from router_ext.extproc.access_log import record_of
from router_ext.health.failures import failure_of, succeeded
from tests.envoy.envoygen.streams import MESSAGES, RESPONSES, streams

CHAT = "/v1/chat/completions"
ROLE = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
ERROR = b'data: {"error":{"message":"engine overloaded","type":"server_error","code":503}}\n\n'
NAMED = b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
DONE = b"data: [DONE]\n\n"


@pytest.mark.parametrize(
    ("path", "pieces"),
    [(CHAT, [ROLE, ERROR, DONE]), (CHAT, [ERROR, DONE]), (MESSAGES, [NAMED]), (RESPONSES, [NAMED])],
    ids=["after content", "at once", "messages", "responses"],
)
async def test_an_error_inside_a_stream_is_a_failure_and_reaches_the_client(
    path: str, pieces: list[bytes], tmp_path: Path
) -> None:
    """Whatever follows it; the client gets the backend's own words."""
    async with streams(tmp_path) as s:
        assert await s.send(pieces, path) == b"".join(pieces)
        assert await s.ends(1) == ["error"]
    record = record_of(s.processor.log_entries[0])
    assert (record.status, failure_of(record), succeeded(record)) == (200, "stream_error", False)
