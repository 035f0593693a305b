"""Bringing a request's answer from another backend than the one that failed it.

An answer is released only when it is certain to be one: a stream at its first token, any other as a whole. Until then a
failure leads to the next candidate. After that nothing is sent twice, and a stream that breaks ends with an error
event.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from typing import Final

from router_ext.config.sections import RouterConfig
from router_ext.engine.answers import nothing_said
from router_ext.engine.attempts import AttemptEnd, Attempts
from router_ext.engine.exchanges import KeptRequest, OpenExchange
from router_ext.engine.failover import Failover
from router_ext.engine.forwarding import call_of, relay_head
from router_ext.engine.opening import Failed, OpenedStream, OpenedWhole, open_stream, open_whole
from router_ext.engine.sessions import Sessions
from router_ext.health import failures
from router_ext.model.outcome import StreamEnd
from router_ext.ports import Clock, CutError, Dispatcher, UnreachableError, UpstreamAnswer
from router_ext.stream.effects import Answer, Followed, RelayBody, Relayed
from router_ext.stream.events import ResponseHeaders, is_failing
from router_ext.stream.sse import WholeEvents
from router_ext.stream.words import broken_stream

PATIENCE: Final = 0.95
"""Share of ``stream_idle_timeout`` in which a stream must begin: after it Envoy ends the client's request."""

_STREAM_FAILURES: Final = {
    StreamEnd.WHOLE: None,
    StreamEnd.ERROR: failures.STREAM_ERROR,
    StreamEnd.TRUNCATED: failures.TRUNCATED,
    StreamEnd.UNKNOWN: failures.TRUNCATED,
}


@dataclass(frozen=True, slots=True)
class RelayTools:
    """What every relay uses."""

    attempts: Attempts
    failover: Failover
    sessions: Sessions
    dispatcher: Dispatcher
    clock: Clock


class Relay:
    """One request's way over the backends that are left."""

    def __init__(self, exchange: OpenExchange, kept: KeptRequest, config: RouterConfig, tools: RelayTools) -> None:
        self._exchange = exchange
        self._kept = kept
        self._server = config.server
        self._defaults = config.defaults
        self._tools = tools
        self._begun_at = tools.clock.monotonic()
        self._streaming = exchange.attempt.decision.request.stream

    async def parts(self, seen: ResponseHeaders | None) -> AsyncGenerator[Relayed]:
        """The parts of the answer; none when the upstream's own, which begins with ``seen``, must do.

        ``seen`` is None where no upstream has been asked yet.
        """
        if seen is not None and not self._move(seen.status, failures.of_answer(seen.status, seen.flags)):
            return
        self._exchange.relayed = AttemptEnd(0, failures.ROUTER_FAULT)
        async with AsyncExitStack() as stack:
            opened = await self._open(stack)
            self._tools.failover.settled(self._exchange)
            match opened:
                case Failed():
                    said = opened.said or nothing_said(opened.failure)
                    # With nobody left to better it, a 429 is an answer like any other 4xx.
                    failure = None if opened.status == 429 else opened.failure
                    self._exchange.relayed = AttemptEnd(opened.status, failure, self._elapsed_s)
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

    # Until an answer is certain

    async def _open(self, stack: AsyncExitStack) -> OpenedStream | OpenedWhole | Failed:
        """Tries one candidate after the other, until an answer is certain or nobody is left."""
        while True:
            result = await self._try(stack)
            if not isinstance(result, Failed):
                return result
            await stack.aclose()
            if not self._move(result.status, result.failure):
                return result

    async def _try(self, stack: AsyncExitStack) -> OpenedStream | OpenedWhole | Failed:
        call = call_of(self._kept.head, self._kept.body, self._exchange)
        try:
            async with asyncio.timeout(self._limit_s):
                return await self._read(await stack.enter_async_context(self._tools.dispatcher.post(call)))
        except TimeoutError:
            return Failed(failures.FIRST_TOKEN_TIMEOUT if self._streaming else failures.TIMEOUT)
        except UnreachableError:
            return Failed(failures.UNREACHABLE)
        except CutError:
            return Failed(failures.CUT)

    async def _read(self, answer: UpstreamAnswer) -> OpenedStream | OpenedWhole | Failed:
        if is_failing(answer.status):
            return await self._refused(answer)
        kind = answer.header("content-type").lower()
        if answer.status == 200 and self._streaming and (not kind or kind.startswith("text/event-stream")):
            return await open_stream(answer)
        return await open_whole(answer, self._server.max_body_bytes)

    async def _refused(self, answer: UpstreamAnswer) -> Failed:
        failure = failures.of_answer(answer.status, answer.flags)
        if answer.flags:
            return Failed(failure)
        self._tools.attempts.pause(self._exchange.attempt, answer.status, answer.header("retry-after"))
        whole = await open_whole(answer, self._server.max_body_bytes)
        return Failed(failure, Answer(answer.status, answer.headers, whole.body))

    def _move(self, status: int, failure: str) -> bool:
        end = AttemptEnd(status, failure, self._elapsed_s)
        return self._limit_s > 0 and self._tools.failover.move(self._exchange, end, self._defaults.max_attempts)

    @property
    def _limit_s(self) -> float:
        """How long an attempt may take until its answer is certain; 0 when the time for the request is up."""
        now = self._tools.clock.monotonic()
        if not self._streaming:
            return max(0.0, self._exchange.started_at + self._server.default_timeout_s - now)
        left_s = max(0.0, self._begun_at + PATIENCE * self._server.stream_idle_timeout_s - now)
        return min(left_s, self._defaults.first_token_timeout_s or left_s)

    @property
    def _elapsed_s(self) -> float:
        return self._tools.clock.monotonic() - self._exchange.attempt.started_at

    # From then on

    async def _events(self, stream: OpenedStream) -> AsyncGenerator[RelayBody]:
        """Whole events only, so that an error event can follow wherever the stream breaks."""
        events = WholeEvents()
        failure: str | None = failures.ROUTER_FAULT
        try:
            yield await self._ready(stream, events.feed(stream.opening))
            try:
                async for piece in stream.rest:
                    stream.reader.feed(piece)
                    ready = events.feed(piece)
                    if ready:
                        yield await self._ready(stream, ready)
                failure = _STREAM_FAILURES[stream.reader.end]
            except CutError:
                failure = None if stream.reader.end is StreamEnd.WHOLE else failures.CUT
            if failure in (None, failures.STREAM_ERROR):
                yield await self._ready(stream, events.rest, end=True)
            else:
                yield RelayBody(broken_stream(self._kept.head.path), end=True)
        finally:
            self._exchange.relayed = AttemptEnd(stream.answer.status, failure, None, stream.reader.usage)

    async def _ready(self, stream: OpenedStream, events: bytes, *, end: bool = False) -> RelayBody:
        if stream.reader.has_token:
            self._tools.attempts.first_token(self._exchange.attempt)
        followed = await self._follow(events, end=end, events=True)
        return RelayBody(events if followed.data is None else followed.data, end)

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
        status, failure, ttft_s = whole.answer.status, failures.ROUTER_FAULT if whole.more else None, self._elapsed_s
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
