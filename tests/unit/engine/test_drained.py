"""Drained backends: nothing new goes there, whoever picks; what is in flight ends there."""

from dataclasses import replace

from router_ext.config.sections import Budget, RouterConfig
from router_ext.engine.pool import Pool
from router_ext.model.outcome import Usage
from router_ext.model.snapshot import Health
from tests.fakes.dispatcher import CannedAnswer
from tests.fakes.domain import backend, head, record, router
from tests.fakes.rig import EngineRig
from tests.unit.engine.gated import BAD, asked, calls, gated, gated_rig, says
from tests.unit.engine.relays import begun, failing, relayed, settled, trio
from tests.unit.engine.shadowed import shadow_rig, shadowed, shadowing
from tests.unit.engine.test_pinning import DOCUMENT, chat, pinning, serve


def drained(config: RouterConfig, *names: str) -> RouterConfig:
    """The same with these backends drained."""
    return replace(config, drained=frozenset(names))


def test_requests_go_elsewhere_while_a_backend_is_drained_and_come_back() -> None:
    """Its health and its count stay; the record of a decision names the reason."""
    config = router(backend("a"), backend("b"))
    rig = EngineRig(config)
    first = rig.forward()
    rig.engine.configure(drained(config, "a"))
    assert rig.engine.pool["a"].state.health is Health.HEALTHY
    rig.forward()
    decision = rig.telemetry.decisions[-1]
    assert decision.backend == "b"
    assert [(item.backend, item.filtered_by, item.reason) for item in decision.candidates if item.filtered_by] == [
        ("a", "drained", "is drained")
    ]
    assert rig.in_flight() == {"a": 1, "b": 1}
    rig.engine.settle(record(first.metadata["id"]))
    assert rig.in_flight() == {"a": 0, "b": 1}
    rig.engine.configure(config)
    rig.forward()
    assert rig.telemetry.decisions[-1].backend == "a"


def test_with_everything_drained_requests_are_refused() -> None:
    """As with everything down; nothing is waited for."""
    rig = EngineRig(drained(router(backend("a"), backend("b")), "a", "b"))
    assert rig.refuse()[0] == 503


def test_requests_that_are_no_inference_go_elsewhere_too() -> None:
    """The first of the chain is drained, then all are."""
    config = router(backend("a"), backend("b"))
    rig = EngineRig(drained(config, "a"))
    assert rig.engine._decider.first_available() == backend("b")
    rig.engine.configure(drained(config, "a", "b"))
    assert rig.engine._decider.first_available() is None


async def test_a_failing_request_does_not_fail_over_to_a_drained_backend() -> None:
    """The one after it is asked."""
    rig = EngineRig(drained(trio(), "b"))
    decision_id = await begun(rig)
    rig.dispatcher.answer("a", failing(503))
    rig.dispatcher.answer("c", CannedAnswer())
    assert (await relayed(rig, decision_id)).status == 200
    settled(rig, decision_id)
    assert [call.backend.name for call in rig.dispatcher.calls] == ["c"]


async def test_a_drained_fallback_of_the_gate_is_not_asked() -> None:
    """The bad answer is all there is."""
    rig = gated_rig(drained(gated(), "b"))
    rig.dispatcher.answer("a", says(BAD))
    assert (await asked(rig)).status == 200
    assert calls(rig) == ["a"]


async def test_a_drained_backend_gets_no_shadows() -> None:
    """They are skipped, and say so."""
    rig = shadow_rig(a=CannedAnswer())
    rig.configure(drained(shadowing(), "b"))
    await shadowed(rig)
    assert (rig.asked, rig.results) == (["a"], ["skipped"])


def test_a_drained_target_gets_no_downgraded_requests() -> None:
    """They are refused as with a target that is down: the budget is spent."""
    config = router(backend("a", cost=1.0), backend("b", cost=1.0), chain=("a",))
    limited = replace(config, budgets=(Budget("shop", 1e-6, "downgrade", "b"),))
    rig = EngineRig(drained(limited, "b"))
    shop = head(x_kronaxis_service="shop")
    rig.engine.settle(record(rig.forward(head_=shop).metadata["id"], usage=Usage(1000, 1000)))
    assert rig.refuse(head_=shop)[0] == 429


def test_a_conversation_leaves_a_drained_backend_and_finds_its_pin_again() -> None:
    """The pin is not forgotten, only not used."""
    config = pinning(backend("a"), backend("b", model="m-a"))
    rig = EngineRig(config)
    first, _ = serve(rig, chat(DOCUMENT))
    other = {"a": "b", "b": "a"}[first]
    rig.engine.configure(drained(config, first))
    assert serve(rig, chat(DOCUMENT, "x", "y"))[0] == other
    rig.engine.configure(drained(config, other))
    assert serve(rig, chat(DOCUMENT, "another", "tail")) == (first, "HIT")


def test_a_backend_that_comes_drained_is_drained_from_the_start() -> None:
    """A new one, and one that moved to another address."""
    pool = Pool()
    pool.configure([backend()], frozenset({"a", "b"}))
    assert pool["a"].state.drained
    pool.configure([backend(), backend("b")], frozenset({"b"}))
    assert [slot.state.drained for slot in pool.slots().values()] == [False, True]
