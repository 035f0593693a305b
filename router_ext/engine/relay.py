"""Bringing a request's answer from another backend than the one that failed it.

An answer is released only when it is certain to be one: a stream at its first token, any other as a whole. Until then a
failure leads to the next candidate. After that nothing is sent twice, and a stream that breaks ends with an error
event.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing
from typing import Final

from router_ext.config.sections import RouterConfig
from router_ext.engine.answers import nothing_said
from router_ext.engine.asked_usage import asks
from router_ext.engine.attempts import AttemptEnd
from router_ext.engine.exchanges import KeptRequest, OpenExchange
from router_ext.engine.forwarding import relay_head
from router_ext.engine.opening import Failed, Opened, OpenedStream, OpenedWhole
from router_ext.engine.tries import RelayTools, Tries
from router_ext.health import failures
from router_ext.model.outcome import StreamEnd
from router_ext.ports import CutError
from router_ext.stream.effects import Followed, RelayBody, Relayed
from router_ext.stream.events import ResponseHeaders
from router_ext.stream.sse import WholeEvents
from router_ext.stream.without_usage import WithoutUsage
from router_ext.stream.words import broken_stream

_STREAM_FAILURES: Final = {
    StreamEnd.WHOLE: None,
    StreamEnd.ERROR: failures.STREAM_ERROR,
    StreamEnd.TRUNCATED: failures.TRUNCATED,
    StreamEnd.UNKNOWN: failures.TRUNCATED,
}


class Relay:
    """One request's way over the backends that are left."""

    def __init__(self, exchange: OpenExchange, kept: KeptRequest, config: RouterConfig, tools: RelayTools) -> None:
        self._exchange = exchange
        self._path = kept.head.path
        self._tools = tools
        self._tries = Tries(exchange, kept, config, tools)
        self._hidden: WithoutUsage | None = None

    async def parts(self, seen: ResponseHeaders | None) -> AsyncGenerator[Relayed]:
        """The parts of the answer; none when the upstream's own, which begins with ``seen``, must do.

        ``seen`` is None where no upstream has been asked yet.
        """
        if seen is not None and not self._tries.move(seen.status, failures.of_answer(seen.status, seen.flags)):
            return
        self._exchange.relayed = AttemptEnd(0, failures.ROUTER_FAULT)
        async with AsyncExitStack() as stack:
            opened = await self._tries.open(stack)
            self._tools.failover.settled(self._exchange)
            async with aclosing(self.release(opened)) as parts:
                async for part in parts:
                    yield part

    async def release(self, opened: Opened | Failed) -> AsyncGenerator[Relayed]:
        """The parts of an answer that is certain, or of what is said in its place."""
        match opened:
            case Failed():
                said = opened.said or nothing_said(opened.failure)
                # With nobody left to better it, a 429 is an answer like any other 4xx.
                failure = None if opened.status == 429 else opened.failure
                self._exchange.relayed = AttemptEnd(opened.status, failure, self._tries.elapsed_s)
                yield relay_head(said.status, said.headers, self._exchange)
                yield RelayBody(said.body, end=True)
            case OpenedStream():
                yield relay_head(opened.answer.status, opened.answer.headers, self._exchange)
                async with aclosing(self._events(opened)) as bodies:
                    async for body in bodies:
                        yield body
            case OpenedWhole():
                async with aclosing(self._whole(opened)) as parts:
                    async for part in parts:
                        yield part

    async def _events(self, stream: OpenedStream) -> AsyncGenerator[RelayBody]:
        """Whole events only, so that an error event can follow wherever the stream breaks."""
        events = WholeEvents()
        if asks(self._exchange, self._exchange.attempt.slot.state.backend):
            self._hidden = WithoutUsage()
        failure: str | None = failures.ROUTER_FAULT
        try:
            yield await self._ready(stream, events.feed(stream.opening))
            try:
                async for piece in stream.rest:
                    stream.reader.feed(piece)
                    ready = events.feed(piece)
                    if ready and (body := await self._ready(stream, ready)).data:
                        yield body
                failure = _STREAM_FAILURES[stream.reader.end]
            except CutError:
                failure = None if stream.reader.end is StreamEnd.WHOLE else failures.CUT
            if failure in (None, failures.STREAM_ERROR):
                yield await self._ready(stream, events.rest, end=True)
            else:
                yield RelayBody(broken_stream(self._path), end=True)
        finally:
            self._exchange.relayed = AttemptEnd(stream.answer.status, failure, None, stream.reader.usage)

    async def _ready(self, stream: OpenedStream, events: bytes, *, end: bool = False) -> RelayBody:
        if stream.reader.has_token:
            self._tools.attempts.first_token(self._exchange.attempt)
        followed = await self._follow(events, end=end, events=True)
        data = events if followed.data is None else followed.data
        # After the session, which keeps the counts.
        return RelayBody(data if self._hidden is None else self._hidden.feed(data, end=end), end)

    async def _follow(self, data: bytes, *, end: bool, events: bool) -> Followed:
        turn = self._exchange.turn
        if turn is None:
            return Followed()
        followed = await self._tools.sessions.follow(turn, data, end=end, events=events)
        if followed.done and turn.kept is not None:
            self._tools.attempts.answered(self._exchange.attempt, turn.kept)
        return followed

    async def _whole(self, whole: OpenedWhole) -> AsyncGenerator[Relayed]:
        """Head and body. An answer that breaks beyond what may be held has no end, which the client sees."""
        status = whole.answer.status
        ttft_s = self._tries.elapsed_s if whole.took_s is None else whole.took_s
        failure = failures.ROUTER_FAULT if whole.more else None
        self._exchange.relayed = AttemptEnd(status, failure, ttft_s, whole.reader.usage)
        if whole.more is None and 200 <= status < 300:
            followed = await self._follow(whole.body, end=True, events=False)
            if followed.status is not None and followed.data is not None:
                told = (("content-type", "application/json"), *followed.headers)
                yield relay_head(followed.status, told, self._exchange)
                yield RelayBody(followed.data, end=True)
                return
        yield relay_head(status, whole.answer.headers, self._exchange)
        yield RelayBody(whole.body, end=whole.more is None)
        if whole.more is not None:
            async for body in self._more(whole, whole.more, ttft_s):
                yield body

    async def _more(self, whole: OpenedWhole, more: AsyncIterator[bytes], ttft_s: float) -> AsyncGenerator[RelayBody]:
        failure: str | None = failures.ROUTER_FAULT
        try:
            async for piece in more:
                whole.reader.feed(piece)
                yield RelayBody(piece, end=False)
            failure = None
            yield RelayBody(b"", end=True)
        except CutError:
            failure = failures.CUT
        finally:
            self._exchange.relayed = AttemptEnd(whole.answer.status, failure, ttft_s, whole.reader.usage)
