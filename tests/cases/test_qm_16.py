"""QM-16: a backend that leaves and comes back must not count below zero."""

from tests.fakes.domain import backend, record, router
from tests.fakes.rig import EngineRig


def test_each_request_ends_on_the_instance_that_it_began_on() -> None:
    """The first ends on the backend that was removed, the second on the one that took its name."""
    rig = EngineRig(router(backend()))
    first = rig.forward().metadata["id"]
    rig.engine.configure(router(backend("b")))
    rig.engine.configure(router(backend()))
    rig.heal()
    second = rig.forward().metadata["id"]
    assert rig.in_flight() == {"a": 1}
    rig.engine.settle(record(first))
    assert rig.in_flight() == {"a": 1}
    rig.engine.settle(record(second))
    assert rig.in_flight() == {"a": 0}
