"""Messages between the router and a judge."""

from io import BytesIO

import pytest

from router_ext.model.gate import SchemaVerdict
from router_ext.schemas.frames import REPLY, Reply, Request, decode_reply, encode_reply, encode_request, read_request


@pytest.mark.parametrize("schema", [None, b"", b"true", b"{" * 65_536])
@pytest.mark.parametrize("text", [b"", b"\x00\xff\n", b"x" * 200_000])
def test_requests_are_read_as_they_were_written(schema: bytes | None, text: bytes) -> None:
    """One after the other; no schema differs from an empty one."""
    first, second = Request(schema, text), Request(b"false", b"1")
    source = BytesIO(encode_request(first) + encode_request(second))
    assert [read_request(source), read_request(source), read_request(source)] == [first, second, None]


@pytest.mark.parametrize("size", [0, 1, 8, 12, 15])
def test_a_cut_off_request_is_the_end(size: int) -> None:
    """The router is gone then."""
    assert read_request(BytesIO(encode_request(Request(b"true", b"null"))[:size])) is None


@pytest.mark.parametrize("verdict", list(SchemaVerdict))
@pytest.mark.parametrize("worn", [True, False])
def test_replies_are_read_as_they_were_written(verdict: SchemaVerdict, worn: bool) -> None:
    """In two bytes."""
    data = encode_reply(Reply(verdict, worn))
    assert len(data) == REPLY.size == 2
    assert decode_reply(data) == Reply(verdict, worn)
