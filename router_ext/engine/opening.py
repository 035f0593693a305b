"""The beginning of a backend's answer: read until it is certain to be one, and not further."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from router_ext.health.failures import STREAM_ERROR, TRUNCATED
from router_ext.model.outcome import StreamEnd
from router_ext.ports import UpstreamAnswer
from router_ext.stream.answer import StreamReader, UsageReader
from router_ext.stream.effects import Answer
from router_ext.stream.sse import MAX_LINE_BYTES


@dataclass(frozen=True, slots=True)
class OpenedStream:
    """An event stream at its first token. ``rest`` is what comes after ``opening``."""

    answer: UpstreamAnswer
    opening: bytes
    rest: AsyncIterator[bytes]
    reader: StreamReader


@dataclass(frozen=True, slots=True)
class OpenedWhole:
    """Any other answer, complete. ``more`` holds what is left of one that is larger than may be held. ``took_s`` is how
    long its backend took, None where it is released as soon as it is there.
    """

    answer: UpstreamAnswer
    body: bytes
    more: AsyncIterator[bytes] | None
    reader: UsageReader
    took_s: float | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt without an answer. ``said`` is what the backend said, None when that is of no use to a client."""

    failure: str
    said: Answer | None = None

    @property
    def status(self) -> int:
        """The status of what the backend said, 0 when it said nothing."""
        return 0 if self.said is None else self.said.status


Opened = OpenedStream | OpenedWhole


async def open_stream(answer: UpstreamAnswer) -> OpenedStream | Failed:
    """Reads up to the first token. An end or an error before it is a failure; a stream that says that it is whole
    without a token is an answer. Raises CutError.
    """
    reader, opening, pieces = StreamReader(), bytearray(), answer.pieces()
    async for piece in pieces:
        opening += piece
        reader.feed(piece)
        if reader.has_token or len(opening) > MAX_LINE_BYTES:
            break
        if reader.end is StreamEnd.ERROR:
            return Failed(STREAM_ERROR, Answer(answer.status, answer.headers, bytes(opening)))
    else:
        if reader.end is not StreamEnd.WHOLE:
            return Failed(TRUNCATED)
    return OpenedStream(answer, bytes(opening), pieces, reader)


async def open_whole(answer: UpstreamAnswer, limit: int) -> OpenedWhole:
    """Reads all of it, or what exceeds ``limit`` bytes first. Raises CutError."""
    reader, body, pieces = UsageReader(), bytearray(), answer.pieces()
    async for piece in pieces:
        body += piece
        reader.feed(piece)
        if len(body) > limit:
            return OpenedWhole(answer, bytes(body), pieces, reader)
    return OpenedWhole(answer, bytes(body), None, reader)
