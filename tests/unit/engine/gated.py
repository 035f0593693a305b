"""Requests whose answers the quality gate looks at: ``a`` is cheap and asked first, ``b`` is the fallback."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import Final

import orjson

from router_ext.config.sections import Defaults, OnExhausted, QualityGate, RouterConfig, Server, Streaming
from router_ext.model.backend import Backend
from router_ext.model.gate import Checks
from router_ext.stream.events import RequestHead, ResponseHeaders
from tests.fakes.dispatcher import CannedAnswer, event_stream
from tests.fakes.domain import backend, head, router
from tests.fakes.rig import BODY, EngineRig
from tests.fakes.session_turns import events, plain
from tests.unit.engine.relays import JSON, STREAM, Told, begun, relayed, settled

GOOD: Final = '{"n":1}'
BETTER: Final = '{"n":2}'
BAD: Final = "no JSON"
WORSE: Final = "none either"
STAND_IN: Final = ResponseHeaders(503, "", False)
"""What Envoy says in place of an upstream while the router brings the answer."""

SCHEMA: Final = '{"type":"object"}'
WITH_SCHEMA: Final = head(x_kronaxis_response_schema=SCHEMA)
IDLE: Final = {"a": 0, "b": 0}


def gated(
    *backends: Backend,
    chain: tuple[str, ...] = ("a",),
    checks: Checks = Checks(valid_json=True),  # noqa: B008 - it is immutable
    parallel: bool = False,
    sample_rate: float = 1.0,
    streaming: Streaming | None = None,
    on_exhausted: OnExhausted = OnExhausted.RETURN,
    **server: float,
) -> RouterConfig:
    """Answers must be JSON unless told otherwise. A token of ``a`` costs 1 micro-dollar, one of ``b`` 10."""
    config = router(*(backends or (backend("a", cost=1.0), backend("b", cost=10.0))))
    gate = QualityGate(
        enabled=True,
        mode="parallel" if parallel else "sequential",
        fallback_backend="b",
        sample_rate=sample_rate,
        streaming=streaming,
        on_exhausted=on_exhausted,
        checks=checks,
    )
    return replace(config, defaults=Defaults(chain), quality_gate=gate, server=Server(**server))  # type: ignore[arg-type]


def gated_rig(config: RouterConfig | None = None) -> EngineRig:
    """An engine that looks at every answer."""
    return EngineRig(config or gated(), draw=lambda: 0.5)


def answering(*cheap: CannedAnswer | None, fallback: CannedAnswer | None = None, **changes: object) -> EngineRig:
    """The same, whose cheap backend and fallback answer so; ``changes`` are those of ``gated``."""
    rig = gated_rig(gated(**changes))  # type: ignore[arg-type]
    rig.dispatcher.answer("a", *cheap)
    rig.dispatcher.answer("b", fallback)
    return rig


def says(content: str, usage: tuple[int, int] | None = (8, 2), finish: str = "stop") -> CannedAnswer:
    """A plain answer of one choice, by default of 10 tokens."""
    return CannedAnswer(body=(plain(content, finish, usage),))


def choices(*contents: str) -> CannedAnswer:
    """A plain answer of several choices."""
    listed = [
        {"index": at, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
        for at, content in enumerate(contents)
    ]
    return CannedAnswer(body=(orjson.dumps({"choices": listed}),))


def calling() -> CannedAnswer:
    """A plain answer that calls a tool, with arguments that are no JSON."""
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "no JSON"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    return CannedAnswer(body=(orjson.dumps({"choices": [choice]}),))


def streams(*contents: str, cut: bool = False) -> CannedAnswer:
    """A streamed answer, each event a piece, by default of 10 tokens."""
    return event_stream(*events(*contents), cut=cut)


@dataclass(slots=True)
class Waiting(CannedAnswer):
    """An answer whose body begins when ``go`` is set. ``asked`` is set once somebody waits for it."""

    go: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    acts: Callable[[], object] = lambda: None

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body."""
        self.asked.set()
        await self.go.wait()
        self.acts()
        async for piece in CannedAnswer.pieces(self):
            yield piece


def slow(answer: CannedAnswer, acts: Callable[[], object] = lambda: None) -> Waiting:
    """The same answer, which waits for ``go``; then ``acts`` happens before its first piece."""
    return Waiting(answer.status, answer.headers, answer.body, acts=acts)


def error(status: int) -> CannedAnswer:
    """A backend's own error."""
    return CannedAnswer(status, JSON, (b'{"error":"mine"}',))


async def asked(rig: EngineRig, body: bytes = BODY, head_: RequestHead | None = None) -> Told:
    """What a gated request is answered, which is then settled."""
    decision_id = await begun(rig, body, head_)
    told = await relayed(rig, decision_id, STAND_IN)
    settled(rig, decision_id)
    return told


async def asked_stream(rig: EngineRig, head_: RequestHead | None = None) -> Told:
    """The same of a streamed request, which brings a schema unless told otherwise."""
    return await asked(rig, STREAM, head_ or WITH_SCHEMA)


def quality(told: Told) -> tuple[str, str, str]:
    """What the client is told: the gate's word, who answered, how many were asked ("" for one)."""
    names = ("x-kronaxis-quality", "x-kronaxis-backend", "x-kronaxis-attempts")
    word, name, attempts = (told.headers.get(name, "") for name in names)
    return word, name, attempts


def body_of(answer: CannedAnswer) -> bytes:
    """All of an answer's body."""
    return b"".join(answer.body)


def calls(rig: EngineRig) -> list[str]:
    """Which backends the router has asked, in order."""
    return [call.backend.name for call in rig.dispatcher.calls]
