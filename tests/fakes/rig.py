"""An engine with a clock and telemetry of its own, and whole exchanges through the stream machine."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeVar

import orjson

from router_ext.config.sections import RouterConfig
from router_ext.engine.engine import Engine
from router_ext.engine.intake import wants_body
from router_ext.engine.surroundings import Surroundings
from router_ext.engine.tally import Tally
from router_ext.model.snapshot import Health
from router_ext.ports import NO_SHADOW_LOG, SessionStore, ShadowSink
from router_ext.stream.effects import Answer, Ask, AskFollow, AskRelay, Effect, Forward, Plan, ReportFirstToken
from router_ext.stream.events import Event, RequestHead
from router_ext.stream.exchange import Exchange
from tests.fakes.clock import FakeClock
from tests.fakes.dispatcher import CannedDispatcher
from tests.fakes.domain import head
from tests.fakes.judge import FakeJudge
from tests.fakes.pairs import KeptPairs
from tests.fakes.session_store import FakeSessionStore
from tests.fakes.telemetry import RecordingTelemetry

T = TypeVar("T")

BODY = b'{"model":"m-a","messages":[{"role":"user","content":"hi"}]}'


@dataclass(slots=True)
class EngineRig:
    """An engine whose backends are all healthy. ``store`` takes the place of ``sessions``, and ``loop`` that of a new
    event loop for each call. ``tally`` is there for one of several workers. ``judge`` and ``pairs`` are the quality
    gate's.
    """

    config: RouterConfig
    clock: FakeClock = field(default_factory=FakeClock)
    telemetry: RecordingTelemetry = field(default_factory=RecordingTelemetry)
    dispatcher: CannedDispatcher = field(default_factory=CannedDispatcher)
    sessions: FakeSessionStore = field(default_factory=FakeSessionStore)
    draw: Callable[[], float] = lambda: 1.0
    store: SessionStore | None = None
    loop: asyncio.AbstractEventLoop | None = None
    tally: Tally | None = None
    judge: FakeJudge = field(default_factory=FakeJudge)
    pairs: KeptPairs = field(default_factory=KeptPairs)
    shadow_log: ShadowSink = NO_SHADOW_LOG
    engine: Engine = field(init=False)

    def __post_init__(self) -> None:
        outside = self.telemetry, self.clock, self.dispatcher, self.store or self.sessions
        around = Surroundings(tally=self.tally, judge=self.judge, pairs=self.pairs, shadow_log=self.shadow_log)
        self.engine = Engine(self.config, *outside, id_prefix="t", draw=self.draw, around=around)
        self.heal()

    def heal(self) -> None:
        """Makes every configured backend healthy."""
        for name in self.engine.pool.slots():
            self.engine.set_health(name, Health.HEALTHY)

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The coroutine's result."""
        return asyncio.run(coroutine) if self.loop is None else self.loop.run_until_complete(coroutine)

    def plan(self, body: bytes | None = BODY, head_: RequestHead | None = None) -> Plan:
        """The plan for one request."""
        return self.wait(self.engine.plan(head_ or head(), body))

    def forward(self, body: bytes | None = BODY, head_: RequestHead | None = None) -> Forward:
        """The plan of a request that must be routed."""
        plan = self.plan(body, head_)
        assert isinstance(plan, Forward), plan
        return plan

    def refuse(self, body: bytes | None = BODY, head_: RequestHead | None = None) -> tuple[int, dict[str, str | None]]:
        """Status and error object of a request that must be refused."""
        plan = self.plan(body, head_)
        assert isinstance(plan, Answer), plan
        return plan.status, orjson.loads(plan.body)["error"]

    def in_flight(self) -> dict[str, int]:
        """Requests in flight by backend."""
        return {name: state.in_flight for name, state in self.engine.pool.snapshot().items()}


class ExchangeRun:
    """One exchange: events go in, the effects that are left after the engine answered come out."""

    def __init__(self, rig: EngineRig, max_body_bytes: int = 1 << 20) -> None:
        self._rig = rig
        self._machine = Exchange(wants_body, max_body_bytes)
        self.decision_id = ""

    def feed(self, *events: Event) -> list[Effect]:
        """The effects of the next messages, in order; questions and reports go to the engine."""
        return [done for event in events for done in self._perform(self._machine.receive(event))]

    def _perform(self, effects: Iterable[Effect]) -> list[Effect]:
        done: list[Effect] = []
        for effect in effects:
            match effect:
                case Ask():
                    done += self._perform(self._machine.plan(self._answer(effect)))
                case AskRelay():
                    done += self._perform(self._rig.wait(self._relay(effect)))
                case AskFollow():
                    followed = self._rig.wait(self._rig.engine.follow(self.decision_id, effect))
                    done += self._perform(self._machine.followed(followed))
                case ReportFirstToken():
                    self._rig.engine.first_token(self.decision_id)
                case _:
                    done.append(effect)
        return done

    async def _relay(self, ask: AskRelay) -> list[Effect]:
        replies: list[Effect] = []
        async with aclosing(self._rig.engine.relay(self.decision_id, ask.seen)) as parts:
            async for part in parts:
                replies += self._machine.relayed(part)
        return [*replies, *self._machine.end_relay()]

    def _answer(self, ask: Ask) -> Plan:
        plan = self._rig.wait(
            self._rig.engine.plan(ask.head, ask.body, can_relay=ask.can_relay, can_follow=ask.can_follow)
        )
        if isinstance(plan, Forward):
            self.decision_id = plan.metadata["id"]
        return plan
