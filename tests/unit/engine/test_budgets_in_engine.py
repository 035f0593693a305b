"""Daily budgets of live requests: rejected, downgraded, and what is set aside until they end. A token costs a
micro-dollar."""

import asyncio
import gzip
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from router_ext.config.sections import Budget, RouterConfig
from router_ext.engine.spend import OTHER
from router_ext.model.backend import Backend
from router_ext.model.outcome import Usage
from router_ext.model.snapshot import Health
from router_ext.stream.effects import Answer, Forward
from tests.fakes.domain import backend, head, record, router
from tests.fakes.rig import EngineRig
from tests.fakes.session_turns import created, said, with_sessions
from tests.unit.engine.gated import BAD, GOOD, STAND_IN, gated, says
from tests.unit.engine.relays import begun, failing, give_up, relayed, settled

DOLLAR = 1_000_000
SHOP = head(x_kronaxis_service="shop")
TENTH = b'{"model":"m-a","max_tokens":100000}'
"""Ten cents of output, and 9 micro-dollars for the 35 bytes of it."""
RESERVED = 100_009


def at(text: str) -> float:
    """Seconds since the epoch at a time of UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def config(*budgets: Budget, backends: tuple[Backend, ...] = (), chain: tuple[str, ...] = ("a",)) -> RouterConfig:
    """``a`` serves; ``b``, at a tenth of its price, is nobody's choice."""
    both = backends or (backend("a", cost=1.0), backend("b", model="m-b", cost=0.1))
    return replace(router(*both, chain=chain), budgets=budgets)


def rig(*budgets: Budget, backends: tuple[Backend, ...] = (), chain: tuple[str, ...] = ("a",)) -> EngineRig:
    """An engine at noon whose ``shop`` may spend a dollar a day, unless told otherwise."""
    made = EngineRig(config(*(budgets or (Budget("shop", 1.0),)), backends=backends, chain=chain))
    made.clock.wall_s = at("2026-03-10T12:00:00")
    return made


def spend(made: EngineRig, micro_usd: int) -> None:
    """``shop`` paid for something."""
    made.engine.spend.add("shop", micro_usd, made.clock.wall())


def reserved(made: EngineRig) -> int:
    """Micro-dollars set aside for ``shop``."""
    return made.engine.budgets.reserved("shop")


def test_of_fifty_requests_at_the_edge_one_passes() -> None:
    """0.95 of 1.00 are spent, each may cost 0.10: the first takes the room of all, and they overshoot by it at most."""
    made = rig()
    spend(made, 950_000)

    async def scene() -> list[object]:
        return list(await asyncio.gather(*(made.engine.plan(SHOP, TENTH) for _ in range(50))))

    plans = asyncio.run(scene())
    passed = [plan for plan in plans if isinstance(plan, Forward)]
    assert len(passed) == 1
    made.engine.settle(record(passed[0].metadata["id"], usage=Usage(9, 100_000)))
    assert made.engine.spend.spent("shop", made.clock.wall()) == 1_050_009
    assert made.telemetry.budget_actions == [("shop", "reject")] * 49


def test_room_that_an_answer_did_not_need_is_there_for_the_next() -> None:
    """It cost 10 micro-dollars of ten cents."""
    made = rig()
    spend(made, 950_000)
    first = made.forward(TENTH, SHOP).metadata["id"]
    assert made.refuse(TENTH, SHOP)[0] == 429
    made.engine.settle(record(first, usage=Usage(9, 1)))
    made.forward(TENTH, SHOP)


def test_a_rejection_is_429_with_the_time_to_midnight() -> None:
    """It is on record as one, and nothing is in flight for it."""
    made = rig()
    spend(made, DOLLAR)
    plan = made.plan(TENTH, SHOP)
    assert isinstance(plan, Answer)
    assert (plan.status, dict(plan.headers)["retry-after"]) == (429, "43200")
    assert made.refuse(TENTH, SHOP) == (
        429,
        {
            "message": "The daily budget is spent.",
            "type": "insufficient_quota",
            "param": None,
            "code": "budget_exceeded",
        },
    )
    assert made.in_flight() == {"a": 0, "b": 0}
    assert (made.engine.recent[-1].rule, made.engine.recent[-1].rejection) == ("budget", "budget_exceeded")


def test_other_paths_have_no_budget() -> None:
    """The services of their callers are not looked at."""
    made = rig(Budget("default", 1.0))
    made.engine.spend.add(OTHER, DOLLAR, made.clock.wall())
    assert made.refuse(TENTH)[0] == 429
    made.forward(None, head("/v1/files", "GET"))
    assert made.engine.budgets.reserved(OTHER) == 0


def test_a_request_whose_body_nobody_sees_is_counted_too() -> None:
    """With 4,096 tokens of output, as one that names no limit."""
    made = rig()
    made.forward(None, SHOP)
    assert reserved(made) == 4096


def test_a_body_is_reserved_as_it_is_read_and_not_as_it_was_sent() -> None:
    """35 bytes are 9 tokens, though they are more in gzip."""
    made = rig()
    packed = gzip.compress(TENTH, mtime=0)
    assert len(packed) > len(TENTH) + 4
    made.forward(packed, head(x_kronaxis_service="shop", content_encoding="gzip"))
    assert reserved(made) == RESERVED


def test_a_turn_of_a_session_is_reserved_with_the_messages_that_are_stored() -> None:
    """They are what the backend reads."""
    made = EngineRig(with_sessions(config(Budget("default", 1.0))))
    made.forward(said("more"), head(x_kronaxis_session_id=created(made, "x" * 4000)))
    assert 1000 + 4096 < made.engine.budgets.reserved(OTHER) < 1100 + 4096


# Downgrade

CHEAPER = Budget("shop", 1.0, "downgrade", "b")


def downgraded(made: EngineRig) -> Forward:
    """The plan of a request above the limit."""
    spend(made, DOLLAR)
    return made.forward(TENTH, SHOP)


def test_a_downgraded_request_goes_to_the_target_and_says_so() -> None:
    """With the target's model, a header and a rule of its own; it is paid for as well."""
    made = rig(CHEAPER)
    assert "x-kronaxis-budget" not in dict(made.forward(TENTH, SHOP).response_edits.set)
    plan = downgraded(made)
    told = dict(plan.response_edits.set)
    assert (told["x-kronaxis-budget"], told["x-kronaxis-backend"], told["x-kronaxis-rule"]) == (
        "downgraded",
        "b",
        "budget",
    )
    assert plan.body is not None
    assert b'"m-b"' in plan.body
    assert made.telemetry.budget_actions == [("shop", "downgrade")]
    assert reserved(made) == RESERVED + 10_001
    made.engine.settle(record(plan.metadata["id"], usage=Usage(10, 90)))
    assert made.engine.spend.spent("shop", made.clock.wall()) == DOLLAR + 10


def test_a_target_that_is_down_rejects() -> None:
    """It may be up again in five seconds, which is what the client is told."""
    made = rig(CHEAPER)
    made.engine.set_health("b", Health.DOWN)
    spend(made, DOLLAR)
    plan = made.plan(TENTH, SHOP)
    assert isinstance(plan, Answer)
    assert (plan.status, dict(plan.headers)["retry-after"]) == (429, "5")
    assert made.telemetry.budget_actions == [("shop", "reject")]
    assert made.engine.recent[-1].candidates[0].filtered_by == "health"


def test_a_target_that_is_full_rejects_after_the_usual_wait() -> None:
    """A second later there may be room; within its limit it serves."""
    made = rig(CHEAPER, backends=(backend("a", cost=1.0), backend("b", room=1, cost=0.1)))
    downgraded(made)
    made.clock.step_s = 0.3
    plan = made.plan(TENTH, SHOP)
    assert isinstance(plan, Answer)
    assert (plan.status, dict(plan.headers)["retry-after"]) == (429, "1")


def test_a_request_that_waits_for_room_is_held_against_the_budget_when_it_gets_it() -> None:
    """The last money is gone by then."""
    made = rig(backends=(backend("a", room=1, cost=1.0),))
    first = made.forward(TENTH, SHOP).metadata["id"]

    async def scene() -> object:
        waiting = asyncio.create_task(made.engine.plan(SHOP, TENTH))
        for _ in range(5):
            await asyncio.sleep(0)
        made.engine.settle(record(first, usage=Usage(9, 1_000_000)))
        return await waiting

    plan = asyncio.run(scene())
    assert isinstance(plan, Answer)
    assert plan.status == 429


def test_a_downgraded_request_fails_over_to_nobody() -> None:
    """The others are what the budget does not allow."""
    made = rig(CHEAPER, chain=("a", "b"))
    plan = downgraded(made)
    told = asyncio.run(relayed(made, plan.metadata["id"]))
    assert (told.heads, made.dispatcher.calls) == ([], [])


def test_a_downgraded_answer_that_is_bad_is_not_asked_for_again() -> None:
    """The gate's fallback is what the budget does not allow: the answer is given as ``failed``."""
    gate = gated(backend("a", cost=1.0), backend("b", cost=10.0), backend("c", cost=0.1))
    made = EngineRig(replace(gate, budgets=(Budget("shop", 1.0, "downgrade", "c"),)), draw=lambda: 0.5)
    spend(made, DOLLAR)
    made.dispatcher.answer("c", says(BAD))

    async def scene() -> tuple[int, str, str]:
        told = await relayed(made, await begun(made, TENTH, SHOP), STAND_IN)
        return told.status, told.headers["x-kronaxis-quality"], told.headers["x-kronaxis-budget"]

    assert asyncio.run(scene()) == (200, "failed", "downgraded")


# Giving back


def test_a_settled_request_gives_back_what_was_reserved() -> None:
    """Once, whatever comes later."""
    made = rig()
    first, second = (made.forward(TENTH, SHOP).metadata["id"] for _ in range(2))
    assert reserved(made) == 2 * RESERVED
    for _ in range(2):
        made.engine.settle(record(first))
        assert reserved(made) == RESERVED
    made.engine.settle(record(second, 503, usage=None))
    assert reserved(made) == 0


def test_a_client_that_leaves_gives_back_what_was_reserved() -> None:
    """Its answer has no usage."""
    made = rig()
    made.engine.settle(record(made.forward(TENTH, SHOP).metadata["id"], 0, flags=("DC",), usage=None))
    assert reserved(made) == 0


def test_a_request_that_is_given_up_gives_back_what_was_reserved() -> None:
    """Its late entry gives nothing back twice."""
    made = rig()
    decision_id = made.forward(TENTH, SHOP).metadata["id"]
    give_up(made)
    assert reserved(made) == 0
    made.forward(TENTH, SHOP)
    made.engine.settle(record(decision_id))
    assert reserved(made) == RESERVED


def test_a_request_that_fails_over_is_reserved_at_the_price_of_who_is_asked_next() -> None:
    """Ten cents, then one; nothing once it has ended."""
    made = rig(chain=("a", "b"))
    made.dispatcher.answer("b", failing(500))
    seen = []

    async def scene() -> None:
        decision_id = await begun(made, TENTH, SHOP)
        seen.append(reserved(made))
        await relayed(made, decision_id)
        seen.append(reserved(made))
        settled(made, decision_id)

    asyncio.run(scene())
    assert [*seen, reserved(made)] == [RESERVED, 10_001, 0]


@pytest.mark.parametrize(("first", "parallel"), [(BAD, False), (BAD, True), (GOOD, True)])
def test_a_gated_request_gives_back_what_was_reserved_for_both_backends(first: str, parallel: bool) -> None:
    """One after the other or both at once, and whoever's answer is taken."""
    made = EngineRig(replace(gated(parallel=parallel), budgets=(Budget("shop", 99.0),)), draw=lambda: 0.5)
    made.dispatcher.answer("a", says(first))
    made.dispatcher.answer("b", says(GOOD))

    async def scene() -> None:
        decision_id = await begun(made, TENTH, SHOP)
        assert reserved(made) == RESERVED
        await relayed(made, decision_id, STAND_IN)
        settled(made, decision_id)

    asyncio.run(scene())
    assert reserved(made) == 0
    assert made.engine.spend.spent("shop", made.clock.wall()) > 0


def test_what_is_reserved_outlives_a_new_configuration() -> None:
    """Also one without the budget, or without the backend's old price."""
    made = rig()
    decision_id = made.forward(TENTH, SHOP).metadata["id"]
    made.engine.configure(config())
    made.engine.configure(config(Budget("shop", 1.0), backends=(backend("a", cost=3.0),)))
    assert reserved(made) == RESERVED
    made.engine.settle(record(decision_id))
    assert reserved(made) == 0
