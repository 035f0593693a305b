"""A dispatcher whose answers a test writes down."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from router_ext.ports import Call, CutError, UnreachableError


@dataclass(slots=True)
class CannedAnswer:
    """What a backend answers: the pieces of its body, then the end, or a cut, or silence for ever."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)
    body: tuple[bytes, ...] = (b"{}",)
    flags: tuple[str, ...] = ()
    cut: bool = False
    hangs: bool = False
    closed: bool = False

    def header(self, name: str) -> str:
        """The first value of a header."""
        return next((value for key, value in self.headers if key == name), "")

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body."""
        for piece in self.body:
            yield piece
        if self.hangs:
            await asyncio.Event().wait()
        if self.cut:
            raise CutError("cut")


def event_stream(*body: bytes, cut: bool = False, hangs: bool = False) -> CannedAnswer:
    """An answer of server-sent events."""
    return CannedAnswer(200, (("content-type", "text/event-stream"),), body, cut=cut, hangs=hangs)


@dataclass(slots=True)
class CannedDispatcher:
    """Gives the answers of each backend in order; None stands for a refused connection.

    ``calls`` are the requests that it got, ``unexpected`` those for which no answer was left: they raise, and a server
    may survive that.
    """

    answers: dict[str, deque[CannedAnswer | None]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    unexpected: list[Call] = field(default_factory=list)

    def answer(self, backend: str, *answers: CannedAnswer | None) -> None:
        """Adds answers of one backend."""
        self.answers.setdefault(backend, deque()).extend(answers)

    def forget(self) -> None:
        """No answers, and no requests so far."""
        self.answers.clear()
        self.calls.clear()
        self.unexpected.clear()

    @asynccontextmanager
    async def post(self, call: Call) -> AsyncIterator[CannedAnswer]:
        """See ``ports.Dispatcher``."""
        self.calls.append(call)
        answers = self.answers.get(call.backend.name)
        if not answers:
            self.unexpected.append(call)
            raise AssertionError(f"no answer is left for {call.backend.name}")
        answer = answers.popleft()
        if answer is None:
            raise UnreachableError("refused")
        try:
            yield answer
        finally:
            answer.closed = True
