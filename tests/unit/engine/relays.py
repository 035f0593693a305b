"""Requests whose answers come from another backend than the one that was asked first."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from router_ext.config.sections import Defaults, RouterConfig, Server
from router_ext.model.backend import Backend
from router_ext.model.outcome import AccessRecord
from router_ext.stream.effects import Forward, RelayBody, RelayHead
from router_ext.stream.events import RequestHead, ResponseHeaders
from tests.fakes.dispatcher import CannedAnswer
from tests.fakes.domain import backend, head, record, router
from tests.fakes.rig import BODY, EngineRig
from tests.fakes.telemetry import Settled

STREAM = b'{"model":"m-a","stream":true,"messages":[{"role":"user","content":"hi"}]}'
JSON = (("content-type", "application/json"),)
REFUSED = ResponseHeaders(503, "application/json", False)
"""The head of a backend's own 503."""

ROLE = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n'
LAST = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}\n\n'
DONE = b"data: [DONE]\n\n"
ERROR = b'data: {"error":{"message":"engine overloaded","type":"server_error","code":503}}\n\n'
_EARLY = b'{"message":"The backend ended the stream early.","type":"api_error","param":null,"code":"stream_truncated"}'
BROKEN = b'data: {"error":' + _EARLY + b"}\n\ndata: [DONE]\n\n"
BROKEN_TYPED = b'event: error\ndata: {"type":"error","error":' + _EARLY + b"}\n\n"


def failing(status: int, *headers: tuple[str, str]) -> CannedAnswer:
    """A backend's own error."""
    return CannedAnswer(status, (*JSON, *headers), (b'{"error":"mine"}',))


@dataclass(slots=True)
class Acting(CannedAnswer):
    """An answer before each piece of which something happens."""

    acts: Callable[[], object] = lambda: None

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body."""
        async for piece in CannedAnswer.pieces(self):
            self.acts()
            yield piece


def trio(*backends: Backend, max_attempts: int = 3, **server: float) -> RouterConfig:
    """Three backends in order, whose failing answers are replaced; streams are watched by Envoy."""
    config = router(*(backends or (backend("a"), backend("b"), backend("c"))))
    defaults = replace(config.defaults, max_attempts=max_attempts)
    return replace(config, defaults=defaults, server=Server(**server))  # type: ignore[arg-type]


def silent(config: RouterConfig, first_token_timeout_s: float = 60.0) -> RouterConfig:
    """The same with a limit on the silence before the first token: streams come through the router from the start."""
    old = config.defaults
    return replace(config, defaults=Defaults(old.fallback_chain, old.max_attempts, first_token_timeout_s))


@dataclass(slots=True)
class Told:
    """What a relay brought: at most one head, before any body."""

    heads: list[RelayHead] = field(default_factory=list)
    bodies: list[RelayBody] = field(default_factory=list)

    @property
    def status(self) -> int:
        """The status."""
        return self.heads[0].status

    @property
    def body(self) -> bytes:
        """All of the body."""
        return b"".join(part.data for part in self.bodies)

    @property
    def headers(self) -> dict[str, str]:
        """The headers that are set."""
        return dict(self.heads[0].edits.set)

    @property
    def ends(self) -> list[bool]:
        """Which pieces of the body said that they are the last."""
        return [part.end for part in self.bodies]


async def begun(rig: EngineRig, body: bytes = BODY, head_: RequestHead | None = None) -> str:
    """The id of a request that was routed."""
    plan = await rig.engine.plan(head_ or head(), body)
    assert isinstance(plan, Forward), plan
    return plan.metadata["id"]


async def relayed(rig: EngineRig, decision_id: str, seen: ResponseHeaders = REFUSED) -> Told:
    """Everything that takes the place of an answer."""
    told = Told()
    async with aclosing(rig.engine.relay(decision_id, seen)) as parts:
        async for part in parts:
            if isinstance(part, RelayHead):
                assert told.bodies == []
                told.heads.append(part)
            else:
                told.bodies.append(part)
    return told


def settled(rig: EngineRig, decision_id: str, **changes: object) -> Settled:
    """The end of an exchange; Envoy's entry tells of the answer that was replaced."""
    entry: dict[str, object] = {"status": 503, "usage": None, "last_upstream_byte_s": 0.25, **changes}
    rig.engine.settle(_entry(decision_id, entry))
    end = rig.telemetry.ends[-1]
    assert end.decision.id == decision_id
    return end


def _entry(decision_id: str, values: dict[str, object]) -> AccessRecord:
    return record(decision_id, **values)  # type: ignore[arg-type]


def give_up(rig: EngineRig) -> None:
    """Envoy has none of the open requests, five looks long."""
    for _ in range(5):
        rig.clock.advance(1)
        rig.engine.reconcile({"backend-other": 0})
