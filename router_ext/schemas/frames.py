"""What the router and a judge say to each other: a request of a schema and a text, a reply of two bytes."""

from struct import Struct
from typing import BinaryIO, Final, NamedTuple

from router_ext.model.gate import SchemaVerdict

READY: Final = b"\n"
"""The first byte of a judge: it has started."""

REPLY: Final = Struct("BB")
"""The number of the verdict in ``_VERDICTS``; 1 when the judge should be replaced, else 0."""

_REQUEST: Final = Struct(">iI")
"""The bytes of the schema, -1 for none, and those of the text, both of which follow."""

_NO_SCHEMA: Final = -1

_VERDICTS: Final = tuple(SchemaVerdict)


class Request(NamedTuple):
    """A text to judge, against a schema or, without one, for being JSON."""

    schema: bytes | None
    text: bytes


class Reply(NamedTuple):
    """A verdict. ``worn``: the judge holds so much memory that another one should take its place."""

    verdict: SchemaVerdict
    worn: bool


def encode_request(request: Request) -> bytes:
    """The message; a text has less than 4 GiB."""
    if request.schema is None:
        return _REQUEST.pack(_NO_SCHEMA, len(request.text)) + request.text
    return _REQUEST.pack(len(request.schema), len(request.text)) + request.schema + request.text


def read_request(source: BinaryIO) -> Request | None:
    """Waits for the next message; None at the end of ``source``, also in the middle of a message."""
    head = source.read(_REQUEST.size)
    if len(head) < _REQUEST.size:
        return None
    schema_size, text_size = _REQUEST.unpack(head)
    schema = None if schema_size == _NO_SCHEMA else source.read(schema_size)
    text = source.read(text_size)
    return Request(schema, text) if len(text) == text_size else None


def encode_reply(reply: Reply) -> bytes:
    """``REPLY.size`` bytes."""
    return REPLY.pack(_VERDICTS.index(reply.verdict), reply.worn)


def decode_reply(data: bytes) -> Reply:
    """The reply of ``REPLY.size`` bytes that ``encode_reply`` wrote."""
    number, worn = REPLY.unpack(data)
    return Reply(_VERDICTS[number], bool(worn))
