"""An answer that the quality gate sees before the client does, and the fallback's answer in its place.

The answer is held up to its end. A good one is released as it came; for a bad one the fallback is asked, whose answer
is looked at too. To sessions, failover and accounts it is one request with one attempt more.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from typing import Final

from router_ext.config.sections import RouterConfig
from router_ext.engine.answers import refusal
from router_ext.engine.attempts import Attempt, AttemptEnd
from router_ext.engine.exchanges import KeptRequest, OpenExchange
from router_ext.engine.gate import NOT_JUDGED, Judgement
from router_ext.engine.gate_ask import GateAsk
from router_ext.engine.held import Held, hold
from router_ext.engine.opening import Failed, Opened, OpenedStream, OpenedWhole
from router_ext.engine.relay import Relay
from router_ext.engine.tries import RelayTools, Tries
from router_ext.health import failures
from router_ext.model.gate import Fault, Quality
from router_ext.model.rejection import Reason, Rejection
from router_ext.ports import Rescue
from router_ext.stream.effects import Relayed

_EXHAUSTED: Final = refusal(Rejection(Reason.QUALITY_GATE, "No backend gave an answer that passes the quality gate."))


@dataclass(frozen=True, slots=True)
class Judged:
    """What one backend brought for ``attempt``, which has ended unless the answer is larger than may be held, and what
    the gate says of it.
    """

    attempt: Attempt
    answer: Held | Opened | Failed
    judgement: Judgement

    @property
    def is_good(self) -> bool:
        """Nothing speaks against giving it to the client."""
        return self.judgement.fault is None

    @property
    def is_answer(self) -> bool:
        """An answer of a model, good or bad, and no error."""
        released = self.release
        return not isinstance(released, Failed) and 200 <= released.answer.status < 300

    @property
    def release(self) -> Opened | Failed:
        """The answer for the client."""
        return self.answer.opened if isinstance(self.answer, Held) else self.answer


class GatedRelay:
    """One gated request's way over its own backends and the fallback."""

    def __init__(self, exchange: OpenExchange, kept: KeptRequest, config: RouterConfig, tools: RelayTools) -> None:
        self._exchange = exchange
        self._kept = kept
        self._limit = config.server.max_body_bytes
        self._tools = tools
        self._gate = tools.gate
        self._relay = Relay(exchange, kept, config, tools)
        self._tries = Tries(exchange, kept, config, tools)

    async def parts(self, ask: GateAsk) -> AsyncGenerator[Relayed]:
        """The parts of the answer that the client gets."""
        async with AsyncExitStack() as stack:
            decide = self._parallel if ask.parallel else self._sequential
            answer = await decide(ask, stack)
            self._tools.failover.settled(self._exchange)
            async with aclosing(self._relay.release(answer)) as parts:
                async for part in parts:
                    yield part

    # One after the other

    async def _sequential(self, ask: GateAsk, stack: AsyncExitStack) -> Opened | Failed:
        first = await self._first(ask, stack)
        if first.is_good:
            return self._give(ask, first)
        failure = first.answer.failure if isinstance(first.answer, Failed) else None
        request = self._exchange, self._kept
        if not self._tries.left_s or not self._tools.failover.rescue(*request, ask.fallback, failure, _word(first)):
            return self._exhausted(ask, first)
        return self._better(ask, first, await self._ask_fallback(ask, self._exchange.attempt, stack))

    async def _first(self, ask: GateAsk, stack: AsyncExitStack) -> Judged:
        """What the request's own candidates bring."""

        async def certain(opened: Opened) -> Held | Opened | Failed:
            return await self._hold(self._exchange.attempt, opened)

        answer: Held | Opened | Failed = await self._tries.open_until(stack, certain)
        return await self._judged(ask, self._exchange.attempt, answer)

    async def _ask_fallback(self, ask: GateAsk, attempt: Attempt, stack: AsyncExitStack) -> Judged:
        opened = await self._tries.ask(attempt, stack)
        answer = opened if isinstance(opened, Failed) else await self._hold(attempt, opened)
        return await self._judged(ask, attempt, answer)

    async def _hold(self, attempt: Attempt, opened: Opened) -> Held | Opened | Failed:
        if isinstance(opened, OpenedStream) and opened.reader.has_token:
            self._tools.attempts.first_token(attempt)
        held = await hold(opened, self._limit, self._tries.left_s)
        if isinstance(held, Held) and isinstance(held.opened, OpenedWhole):
            took_s = self._tools.clock.monotonic() - attempt.started_at
            return replace(held, opened=replace(held.opened, took_s=took_s))
        return held

    async def _judged(self, ask: GateAsk, attempt: Attempt, answer: Held | Opened | Failed) -> Judged:
        took_s = self._tools.clock.monotonic() - attempt.started_at
        if isinstance(answer, Failed):
            self._tools.attempts.end(attempt, AttemptEnd(answer.status, answer.failure, took_s))
            return Judged(attempt, answer, Judgement(Fault.UPSTREAM))
        judged = Judged(attempt, answer, NOT_JUDGED)
        if not isinstance(answer, Held):
            return judged
        # Its backend is done with it, whatever becomes of the answer and however long that takes.
        ttft_s = attempt.streamed_ttft_s if isinstance(answer.opened, OpenedStream) else took_s
        self._tools.attempts.end(attempt, AttemptEnd(answer.status, None, ttft_s, answer.usage, answer.carried))
        return replace(judged, judgement=await self._gate.judge(ask, answer.read())) if judged.is_answer else judged

    # Both at once

    async def _parallel(self, ask: GateAsk, stack: AsyncExitStack) -> Opened | Failed:
        beside = self._tools.failover.begin_beside(self._exchange, self._kept, ask.fallback)
        if beside is None:
            return await self._sequential(ask, stack)
        try:
            return await self._race(ask, beside, stack)
        finally:
            if self._exchange.attempt is not beside and not beside.ended:
                self._tools.attempts.abandon(beside)

    async def _race(self, ask: GateAsk, beside: Attempt, stack: AsyncExitStack) -> Opened | Failed:
        """The first one's answer if it is good, the other's else, whichever comes first."""
        async with AsyncExitStack() as other_stack, asyncio.TaskGroup() as group:
            other = group.create_task(self._ask_fallback(ask, beside, other_stack), name="gate-fallback")
            first = await self._first(ask, stack)
            if not first.is_good:
                self._tools.failover.go_on_with(self._exchange, beside, _word(first))
                second = await other
                # What is passed on has to outlive the race.
                stack.push_async_exit(other_stack.pop_all())
                return self._better(ask, first, second)
            other.cancel()
        return self._give(ask, first)

    # What the client gets

    def _give(self, ask: GateAsk, first: Judged) -> Opened | Failed:
        """The first answer. It may be the fallback's, where a failover led there."""
        moved = self._exchange.attempts > 1 and first.attempt.decision.backend == ask.fallback
        judged = first.judgement.judged
        self._conclude(Quality.FALLBACK if moved and judged else first.judgement.quality, first)
        return first.release

    def _better(self, ask: GateAsk, first: Judged, second: Judged) -> Opened | Failed:
        """The fallback's answer if it is one, else what the first backend brought."""
        if not second.is_answer:
            if not second.attempt.ended:
                self._tools.attempts.abandon(second.attempt)
            self._exchange.attempt = first.attempt
            return self._exhausted(ask, first)
        if not second.is_good:
            return self._exhausted(ask, second)
        self._conclude(Quality.FALLBACK if second.judgement.judged else Quality.SKIPPED, first)
        if second.judgement.judged:
            self._export(first, second)
        return second.release

    def _export(self, first: Judged, second: Judged) -> None:
        if not isinstance(first.answer, Held) or not isinstance(second.answer, Held):
            return
        rejected, chosen = first.answer.read(), second.answer.read()
        if rejected is not None and chosen is not None:
            decisions = first.attempt.decision, second.attempt.decision
            self._gate.rescued(Rescue(self._kept.body, *decisions, rejected, chosen, _word(first)))

    def _exhausted(self, ask: GateAsk, last: Judged) -> Opened | Failed:
        """Nothing better is to be had."""
        self._conclude(Quality.FAILED, last)
        if ask.returns_bad or isinstance(last.answer, Failed):
            return last.release
        return Failed(failures.QUALITY, _EXHAUSTED)

    def _conclude(self, quality: Quality, judged: Judged) -> None:
        self._exchange.quality, self._exchange.bad_schema = quality, judged.judgement.bad_schema
        self._gate.concluded(quality, judged.judgement)


def _word(judged: Judged) -> str:
    return (judged.judgement.fault or Fault.UPSTREAM).value
