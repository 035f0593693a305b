"""Runs the timing model on an event loop's clock: the only place where a simulated engine meets time."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from router_ext.demo.sim.engine import Engine, Sequence
from router_ext.demo.sim.prompt import Prompt

SLACK_S = 0.0005
"""What is due this soon counts as due: an event loop's timer is no finer, and a fast engine must not wait for it."""


class EngineRunner:
    """Wakes the owner of each sequence when its prefill ends."""

    def __init__(self, engine: Engine, loop: asyncio.AbstractEventLoop) -> None:
        self.engine = engine
        self._loop = loop
        self._waiters: dict[Sequence, asyncio.Future[None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def now(self) -> float:
        """The loop's clock in seconds."""
        return self._loop.time()

    def submit(self, prompt: Prompt) -> Sequence | None:
        """A new sequence, None when the queue is full. The caller must enter ``held`` with it before its next await."""
        sequence = self.engine.submit(prompt, self.now())
        self._turn()
        return sequence

    @contextmanager
    def held(self, sequence: Sequence, reason: str, generated: int) -> Iterator[None]:
        """Frees the sequence at the end of the block: as finished, or as cancelled when the block is left early."""
        finished = False
        try:
            yield
            finished = True
        finally:
            self._waiters.pop(sequence, None)
            if finished:
                self.engine.release(sequence, self.now(), reason, generated)
            else:
                self.engine.cancel(sequence, self.now())
            self._turn()

    async def prefilled(self, sequence: Sequence) -> float:
        """Wait for the end of the prefill; returns when that was."""
        if sequence.prefilled_at is None:
            waiter = self._waiters[sequence] = self._loop.create_future()
            await waiter
        assert sequence.prefilled_at is not None
        return sequence.prefilled_at

    async def until(self, when: float) -> None:
        """Wait until the clock shows ``when``; no wait at all for what is within the slack."""
        delay = when - self.now()
        if delay > SLACK_S:
            await asyncio.sleep(delay)

    def close(self) -> None:
        """Stop the timer; nobody is woken any more."""
        if self._timer:
            self._timer.cancel()

    def _turn(self) -> None:
        for sequence in self.engine.advance(self.now() + SLACK_S):
            waiter = self._waiters.pop(sequence, None)
            if waiter and not waiter.done():
                waiter.set_result(None)
        self.close()
        due = self.engine.due
        self._timer = None if due is None else self._loop.call_at(due, self._turn)
