"""A choice of one backend by its name, over the live state."""

from router_ext.engine.decider import Decider
from router_ext.model.snapshot import Health
from tests.fakes.domain import backend, request, router
from tests.fakes.rig import EngineRig

NOBODY: frozenset[str] = frozenset()


def _rig() -> tuple[EngineRig, Decider]:
    """``b`` is in no rule and in no chain."""
    rig = EngineRig(router(backend("a"), backend("b", model="m-b"), chain=("a",)))
    return rig, rig.engine._decider


def test_a_backend_is_chosen_by_its_name() -> None:
    """As a choice of the rule that is given; nothing is counted or recorded yet."""
    rig, decider = _rig()
    choice = decider.choose_only("b", "r", request(), None, frozenset({"a"}))
    assert choice is not None
    assert (choice.backend.name, choice.rule, choice.upstream_model) == ("b", "r", "m-b")
    assert (rig.in_flight(), len(rig.engine.recent)) == ({"a": 0, "b": 0}, 0)


def test_a_backend_that_cannot_take_the_request_is_not_chosen() -> None:
    """It was tried, is paused, is down, or is gone; there is no choice in its place."""
    rig, decider = _rig()
    assert decider.choose_only("b", "r", request(), None, frozenset({"b"})) is None
    assert decider.choose_only("gone", "r", request(), None, NOBODY) is None
    rig.engine.pool["b"].pause(rig.clock.now_s + 1)
    assert decider.choose_only("b", "r", request(), None, NOBODY) is None
    rig.clock.advance(1)
    assert decider.choose_only("b", "r", request(), None, NOBODY) is not None
    rig.engine.set_health("b", Health.DOWN)
    assert decider.choose_only("b", "r", request(), None, NOBODY) is None
