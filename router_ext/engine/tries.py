"""Asking one backend after the other until an answer is certain.

Until then a failure leads to the next candidate; after that nothing is sent twice.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Final, TypeVar

from router_ext.config.sections import RouterConfig
from router_ext.engine.asked_usage import asks
from router_ext.engine.attempts import Attempt, AttemptEnd, Attempts
from router_ext.engine.exchanges import KeptRequest, OpenExchange
from router_ext.engine.failover import Failover
from router_ext.engine.forwarding import call_of
from router_ext.engine.gate import Gate
from router_ext.engine.opening import Failed, Opened, open_stream, open_whole
from router_ext.engine.sessions import Sessions
from router_ext.health import failures
from router_ext.ports import Clock, CutError, Dispatcher, UnreachableError, UpstreamAnswer
from router_ext.stream.effects import Answer
from router_ext.stream.events import is_failing

PATIENCE: Final = 0.95
"""Share of ``stream_idle_timeout`` in which a stream must begin: after it Envoy ends the client's request."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RelayTools:
    """What every relay uses."""

    attempts: Attempts
    failover: Failover
    sessions: Sessions
    gate: Gate
    dispatcher: Dispatcher
    clock: Clock


async def _as_it_is(opened: Opened) -> Opened:
    return opened


class Tries:
    """One request's way over the backends that are left."""

    def __init__(self, exchange: OpenExchange, kept: KeptRequest, config: RouterConfig, tools: RelayTools) -> None:
        self._exchange = exchange
        self._kept = kept
        self._server = config.server
        self._defaults = config.defaults
        self._tools = tools
        self._begun_at = tools.clock.monotonic()
        self.streaming: Final = exchange.attempt.decision.request.stream

    async def open(self, stack: AsyncExitStack) -> Opened | Failed:
        """Tries one candidate after the other, until an answer is opened or nobody is left. The answer lives as long as
        ``stack``.
        """
        return await self.open_until(stack, _as_it_is)

    async def open_until(self, stack: AsyncExitStack, certain: Callable[[Opened], Awaitable[T | Failed]]) -> T | Failed:
        """The same, where an answer that is opened may still turn out to be a failure: ``certain`` says."""
        while True:
            opened = await self.ask(self._exchange.attempt, stack)
            result = opened if isinstance(opened, Failed) else await certain(opened)
            if not isinstance(result, Failed):
                return result
            await stack.aclose()
            if not self.move(result.status, result.failure):
                return result

    async def ask(self, attempt: Attempt, stack: AsyncExitStack) -> Opened | Failed:
        """The answer of one attempt's backend."""
        asks_usage = asks(self._exchange, attempt.slot.state.backend)
        call = call_of(self._kept.head, self._kept.body, attempt, asks_usage=asks_usage)
        try:
            async with asyncio.timeout(self._limit_s):
                return await self._read(attempt, await stack.enter_async_context(self._tools.dispatcher.post(call)))
        except TimeoutError:
            return Failed(failures.FIRST_TOKEN_TIMEOUT if self.streaming else failures.TIMEOUT)
        except UnreachableError:
            return Failed(failures.UNREACHABLE)
        except CutError:
            return Failed(failures.CUT)

    async def _read(self, attempt: Attempt, answer: UpstreamAnswer) -> Opened | Failed:
        if is_failing(answer.status):
            return await self._refused(attempt, answer)
        kind = answer.header("content-type").lower()
        if answer.status == 200 and self.streaming and (not kind or kind.startswith("text/event-stream")):
            return await open_stream(answer)
        return await open_whole(answer, self._server.max_body_bytes)

    async def _refused(self, attempt: Attempt, answer: UpstreamAnswer) -> Failed:
        failure = failures.of_answer(answer.status, answer.flags)
        if answer.flags:
            return Failed(failure)
        self._tools.attempts.pause(attempt, answer.status, answer.header("retry-after"))
        whole = await open_whole(answer, self._server.max_body_bytes)
        return Failed(failure, Answer(answer.status, answer.headers, whole.body))

    def move(self, status: int, failure: str) -> bool:
        """Goes on to the next candidate after a failure; False when there is none, or no time for it."""
        end = AttemptEnd(status, failure, self.elapsed_s)
        return self._limit_s > 0 and self._tools.failover.move(self._exchange, end, self._defaults.max_attempts)

    @property
    def left_s(self) -> float:
        """Seconds until the client's request ends without an answer."""
        now = self._tools.clock.monotonic()
        if not self.streaming:
            return max(0.0, self._exchange.started_at + self._server.default_timeout_s - now)
        return max(0.0, self._begun_at + PATIENCE * self._server.stream_idle_timeout_s - now)

    @property
    def _limit_s(self) -> float:
        """How long an attempt may take until its answer is opened; 0 when the time for the request is up."""
        if not self.streaming:
            return self.left_s
        return min(self.left_s, self._defaults.first_token_timeout_s or self.left_s)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the present attempt began."""
        return self._tools.clock.monotonic() - self._exchange.attempt.started_at
