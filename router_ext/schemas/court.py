"""Validation in processes of their own: one that takes too long cannot be interrupted, only killed.

The event loop waits for none of them, a caller waits for a bounded time, and no schema or text can harm the router.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from enum import StrEnum
from hashlib import blake2b
from typing import Final

from router_ext.model.gate import SchemaText, SchemaVerdict
from router_ext.schemas.frames import Request
from router_ext.schemas.limits import MAX_BYTES
from router_ext.schemas.process import JudgeLostError, JudgeProcess

JUDGES: Final = 2
DEADLINE_S: Final = 1.0
WAIT_S: Final = 1.0

MAX_BAD: Final = 1024
"""Most schemas that are remembered as bad, by a digest of 16 bytes."""


class JudgeLoss(StrEnum):
    """Why a judge was replaced, or none came."""

    DEADLINE = "deadline"
    DIED = "died"
    WORN = "worn"
    ABANDONED = "abandoned"
    NOT_STARTED = "not_started"


class SchemaCourt:
    """Judges up to ``judges`` texts at once, first come, first served, in an event loop.

    A judge has ``deadline_s`` for a text, a text waits up to ``wait_s`` for a judge. The first call starts the
    processes, one more than ``judges``: it takes the place of one that is lost. ``told`` hears of each loss.
    """

    def __init__(
        self,
        *,
        judges: int = JUDGES,
        deadline_s: float = DEADLINE_S,
        wait_s: float = WAIT_S,
        told: Callable[[JudgeLoss], None] = lambda _: None,
    ) -> None:
        self._seats = judges
        self._deadline_s = deadline_s
        self._wait_s = wait_s
        self._told = told
        # The judge that worked last: it has more of the schemas compiled than one that rests.
        self._free: asyncio.LifoQueue[JudgeProcess] = asyncio.LifoQueue()
        self._seated: set[JudgeProcess] = set()
        self._spare: list[JudgeProcess] = []
        self._starting = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._bad: OrderedDict[bytes, None] = OrderedDict()
        self._closed = False

    @property
    def pids(self) -> frozenset[int]:
        """The processes that judge or stand by."""
        return frozenset(judge.pid for judge in (*self._seated, *self._spare))

    def refuses(self, schema: SchemaText) -> bool:
        """True for a schema that is too large, or was found bad lately."""
        return len(schema.text) > MAX_BYTES or self._is_bad(_digest(schema))

    async def judge(self, schema: SchemaText | None, text: str | bytes) -> SchemaVerdict:
        """The verdict on ``text``; without a schema, whether it is JSON. Never raises but CancelledError.

        TIMEOUT: there was no judge in time, it took too long, it died of what it was given (which a very large or odd
        value may do), or the court is closed. BAD_SCHEMA comes before NOT_JSON. Details: ``verdict.Law``,
        ``strict.parse``, ``limits.check_schema``.
        """
        if schema is not None and self.refuses(schema):
            return SchemaVerdict.BAD_SCHEMA
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        verdict = await self._judged(Request(None if schema is None else schema.text, data))
        if schema is not None and verdict is SchemaVerdict.BAD_SCHEMA:
            self._remember_bad(_digest(schema))
        return verdict

    async def close(self) -> None:
        """Ends all processes. Calls under way, and later ones, get TIMEOUT."""
        self._closed = True
        for judge in (*self._seated, *self._spare):
            self._end(judge)
        self._seated.clear()
        self._spare.clear()
        # A judge that is about to start is ended by a task of its own.
        while self._tasks:
            await asyncio.gather(*self._tasks)

    async def _judged(self, request: Request) -> SchemaVerdict:
        judge = await self._take()
        if judge is None:
            return SchemaVerdict.TIMEOUT
        loss: JudgeLoss | None = JudgeLoss.ABANDONED
        try:
            async with asyncio.timeout(self._deadline_s):
                reply = await judge.ask(request)
            loss = JudgeLoss.WORN if reply.worn else None
            return reply.verdict
        except TimeoutError:
            loss = JudgeLoss.DEADLINE
            return SchemaVerdict.TIMEOUT
        except JudgeLostError:
            loss = JudgeLoss.DIED
            return SchemaVerdict.TIMEOUT
        finally:
            self._give_back(judge, loss)

    async def _take(self) -> JudgeProcess | None:
        """A free judge, None when there is none in time."""
        self._fill_up()
        try:
            async with asyncio.timeout(self._wait_s):
                while not self._closed:
                    judge = await self._free.get()
                    if not judge.ended:
                        return judge
                    self._lose(judge, JudgeLoss.DIED)
        except TimeoutError:
            pass
        return None

    def _give_back(self, judge: JudgeProcess, loss: JudgeLoss | None) -> None:
        if loss is None:
            self._free.put_nowait(judge)
        else:
            self._lose(judge, loss)

    def _lose(self, judge: JudgeProcess, loss: JudgeLoss) -> None:
        """Kills it, and puts the one that stands by in its place."""
        if self._closed:
            return
        self._seated.discard(judge)
        self._end(judge)
        self._told(loss)
        if self._spare:
            self._seat(self._spare.pop())
        self._fill_up()

    def _seat(self, judge: JudgeProcess) -> None:
        if len(self._seated) < self._seats:
            self._seated.add(judge)
            self._free.put_nowait(judge)
        else:
            self._spare.append(judge)

    def _fill_up(self) -> None:
        while not self._closed and len(self._seated) + len(self._spare) + self._starting <= self._seats:
            self._starting += 1
            self._run(self._start(), "schema-judge-start")

    async def _start(self) -> None:
        """One try: the next call makes another one."""
        try:
            judge = await JudgeProcess.start(self._deadline_s)
        except JudgeLostError:
            self._told(JudgeLoss.NOT_STARTED)
            return
        finally:
            self._starting -= 1
        if self._closed:
            self._end(judge)
        else:
            self._seat(judge)

    def _end(self, judge: JudgeProcess) -> None:
        judge.kill()
        self._run(judge.wait(), "schema-judge-end")

    def _run(self, work: Coroutine[None, None, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _is_bad(self, key: bytes) -> bool:
        if key not in self._bad:
            return False
        self._bad.move_to_end(key)
        return True

    def _remember_bad(self, key: bytes) -> None:
        self._bad[key] = None
        if len(self._bad) > MAX_BAD:
            self._bad.popitem(last=False)


def _digest(schema: SchemaText) -> bytes:
    return blake2b(schema.text, digest_size=16).digest()
