"""BUDG-03: parallel calls all passed the check against the same total, and a cap of 5.00 ended at 5.135."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from router_ext.config.sections import Budget
from router_ext.model.outcome import Usage
from router_ext.stream.effects import Forward
from tests.fakes.domain import backend, head, record, router
from tests.fakes.rig import EngineRig
from tests.unit.engine.relays import give_up

CALL = b'{"model":"m-a","max_tokens":100000}'
"""Up to ten cents at a micro-dollar a token."""

SHOP = head(x_kronaxis_service="shop")


def edge() -> EngineRig:
    """0.95 of 1.00 are spent."""
    rig = EngineRig(replace(router(backend(cost=1.0)), budgets=(Budget("shop", 1.0),)))
    rig.engine.spend.add("shop", 950_000, rig.clock.wall())
    return rig


def at_once(rig: EngineRig) -> list[str]:
    """Fifty requests in parallel; the ids of those that pass."""

    async def scene() -> list[object]:
        return list(await asyncio.gather(*(rig.engine.plan(SHOP, CALL) for _ in range(50))))

    return [plan.metadata["id"] for plan in asyncio.run(scene()) if isinstance(plan, Forward)]


@pytest.mark.parametrize("tokens", [49_991, 100_000])
def test_fifty_at_once_go_over_the_cap_by_one_request_at_most(tokens: int) -> None:
    """Whatever it costs of its ten cents. Then nothing passes any more."""
    rig = edge()
    (passed,) = at_once(rig)
    assert at_once(rig) == []
    rig.engine.settle(record(passed, usage=Usage(9, tokens)))
    assert rig.engine.spend.spent("shop", rig.clock.wall()) == 950_009 + tokens
    assert 950_009 + tokens <= 1_050_009
    assert at_once(rig) == []


@pytest.mark.parametrize(
    "end",
    [
        lambda rig, passed: rig.engine.settle(record(passed, usage=Usage(9, 1))),
        lambda rig, passed: rig.engine.settle(record(passed, 500, usage=None)),
        lambda rig, passed: rig.engine.settle(record(passed, 0, flags=("DC",), usage=None)),
        lambda rig, passed: give_up(rig),
    ],
    ids=["answered", "error", "client left", "entry lost"],
)
def test_room_that_was_not_needed_is_there_for_the_next(end: Callable[[EngineRig, str], None]) -> None:
    """However the one that passed ended."""
    rig = edge()
    (passed,) = at_once(rig)
    end(rig, passed)
    assert rig.engine.budgets.reserved("shop") == 0
    assert len(at_once(rig)) == 1
