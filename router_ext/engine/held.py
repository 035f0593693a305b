"""Whole answers, held back until it is clear what becomes of them."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

from router_ext.engine.opening import Failed, Opened, OpenedStream, OpenedWhole
from router_ext.engine.turns import DONE
from router_ext.health.failures import CUT, FIRST_TOKEN_TIMEOUT, STREAM_ERROR, TIMEOUT, TRUNCATED
from router_ext.model.gate import ReadAnswer
from router_ext.model.outcome import Carried, StreamEnd, Usage
from router_ext.payload.read_answer import StreamedAnswerReader, plain_answer
from router_ext.ports import CutError
from router_ext.stream.sse import SseReader


@dataclass(frozen=True, slots=True)
class Held:
    """An answer up to its end. ``opened`` releases it; ``body`` is all of it."""

    opened: Opened
    body: bytes = field(repr=False)

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.opened.answer.status

    @property
    def usage(self) -> Usage | None:
        """The engine's token counts."""
        return self.opened.reader.usage

    @property
    def carried(self) -> Carried:
        """Its bytes; of the request's nothing is known here."""
        return Carried(0, len(self.body), isinstance(self.opened, OpenedStream))

    def read(self) -> ReadAnswer | None:
        """What the model said, None when this is no completion."""
        return plain_answer(self.body) if isinstance(self.opened, OpenedWhole) else read_stream(self.body)


def read_body(body: bytes) -> ReadAnswer | None:
    """What the model said in a body, event stream or not: some engines do not stream what they could; else None."""
    return read_stream(body) or plain_answer(body)


def read_stream(body: bytes) -> ReadAnswer | None:
    """What the model said in a whole event stream, None when it is no completion."""
    reader = StreamedAnswerReader()
    for data in SseReader().feed(body):
        if data != DONE:
            reader.feed(data)
    return reader.answer()


async def hold(opened: Opened, limit: int, timeout_s: float) -> Held | Opened | Failed:
    """Reads an opened answer to its end. What exceeds ``limit`` bytes is returned as it is opened by then, to be passed
    on; what breaks off or takes too long is a failure.
    """
    if isinstance(opened, OpenedWhole):
        return opened if opened.more is not None else Held(opened, opened.body)
    try:
        async with asyncio.timeout(timeout_s):
            return await _hold_stream(opened, limit)
    except TimeoutError:
        return Failed(TIMEOUT if opened.reader.has_token else FIRST_TOKEN_TIMEOUT)


async def _hold_stream(opened: OpenedStream, limit: int) -> Held | OpenedStream | Failed:
    body = bytearray(opened.opening)
    try:
        async for piece in opened.rest:
            opened.reader.feed(piece)
            body += piece
            if len(body) > limit:
                return replace(opened, opening=bytes(body))
    except CutError:
        # Nothing is missing after a stream's last word.
        if opened.reader.end is not StreamEnd.WHOLE:
            return Failed(CUT)
    match opened.reader.end:
        case StreamEnd.WHOLE:
            return Held(replace(opened, opening=bytes(body), rest=_nothing()), bytes(body))
        case StreamEnd.ERROR:
            return Failed(STREAM_ERROR)
        case _:
            return Failed(TRUNCATED)


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield
