"""Requests with a shadow: ``a`` answers them, ``b`` is asked the same afterwards."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Final

from router_ext.config.sections import AbTest, Defaults, RouterConfig, Server
from router_ext.engine.exchanges import OpenExchange
from router_ext.engine.shadow import Shadow
from router_ext.model.backend import Backend
from router_ext.model.rule import Match
from router_ext.model.shadow import Comparison
from router_ext.stream.effects import Relayed, RelayHead
from router_ext.stream.events import RequestHead
from tests.fakes.dispatcher import CannedAnswer
from tests.fakes.domain import backend, router
from tests.fakes.rig import BODY, EngineRig
from tests.unit.engine.gated import STAND_IN
from tests.unit.engine.relays import Told, begun, settled

SERVICE: Final = "shop"


@dataclass(slots=True)
class KeptComparisons:
    """Implements ``ports.ShadowSink``."""

    comparisons: list[Comparison] = field(default_factory=list)

    def offer(self, comparison: Comparison) -> None:
        """Keeps it."""
        self.comparisons.append(comparison)


@dataclass(slots=True)
class ShadowRig(EngineRig):
    """An engine with shadows, which are logged in ``log``."""

    log: KeptComparisons = field(default_factory=KeptComparisons)

    def __post_init__(self) -> None:
        self.shadow_log = self.log
        EngineRig.__post_init__(self)

    @property
    def shadow(self) -> Shadow:
        """The engine's own."""
        return self.engine.shadow

    def configure(self, config: RouterConfig) -> None:
        """Takes over a configuration."""
        self.engine.configure(config)
        self.heal()

    @property
    def results(self) -> list[str]:
        """What became of each request that was drawn."""
        return [result for _, result in self.telemetry.shadows]

    @property
    def asked(self) -> list[str]:
        """Which backends were asked by the router, in order."""
        return [call.backend.name for call in self.dispatcher.calls]


def shadow_test(**changes: Any) -> AbTest:
    """A test whose requests all have a shadow."""
    values: dict[str, Any] = {"name": "t", "match": Match(), "variant_a": "a", "variant_b": "b", "split_pct": 100.0}
    return AbTest(**(values | {"mode": "shadow"} | changes))


def shadowing(*backends: Backend, test: AbTest | None = None, **server: Any) -> RouterConfig:
    """A token of ``a`` costs 10 micro-dollars, one of ``b`` 1; each has a key of its own."""
    config = router(
        *(backends or (backend("a", cost=10.0, key="key-a"), backend("b", model="m-b", cost=1.0, key="key-b")))
    )
    tests = (test or shadow_test(),)
    return replace(config, defaults=Defaults(("a",)), ab_tests=tests, server=Server(**server))


def shadow_rig(*answers: CannedAnswer | None, a: CannedAnswer | None = None, **changes: Any) -> ShadowRig:
    """Where ``b`` gives these answers, and ``a`` one if it is given; ``changes`` are those of ``shadowing``."""
    rig = ShadowRig(shadowing(**changes))
    rig.dispatcher.answer("b", *answers)
    if a is not None:
        rig.dispatcher.answer("a", a)
    return rig


async def opened(rig: ShadowRig, body: bytes = BODY, head_: RequestHead | None = None) -> OpenExchange:
    """A request that was routed and looked at."""
    exchange = rig.engine.exchanges.get(await begun(rig, body, head_))
    assert exchange is not None
    return exchange


def parts_of(rig: ShadowRig, exchange: OpenExchange) -> AsyncGenerator[Relayed]:
    """The parts of its answer."""
    return rig.engine.relay(exchange.id, STAND_IN)


async def answered(rig: ShadowRig, body: bytes = BODY, head_: RequestHead | None = None) -> Told:
    """What a request is answered; it is settled then, and its shadow may still be under way."""
    exchange, told = await opened(rig, body, head_), Told()
    async with aclosing(parts_of(rig, exchange)) as parts:
        async for part in parts:
            if isinstance(part, RelayHead):
                told.heads.append(part)
            else:
                told.bodies.append(part)
    settled(rig, exchange.id)
    return told


async def over(rig: ShadowRig) -> None:
    """Returns when no shadow is under way."""
    async with asyncio.timeout(5.0):
        while rig.shadow._calls:  # noqa: ASYNC110 - the set has no event of its own
            await asyncio.sleep(0)


async def shadowed(rig: ShadowRig, body: bytes = BODY, head_: RequestHead | None = None) -> Told:
    """What a request is answered, once its shadow is over, too."""
    told = await answered(rig, body, head_)
    await over(rig)
    return told
