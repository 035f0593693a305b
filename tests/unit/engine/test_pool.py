"""The backends as they live, and configurations that come and go."""

from dataclasses import replace

import pytest

from router_ext.engine.pool import Pool, Slot
from router_ext.engine.reconcile import LeakMeter
from router_ext.model.backend import Endpoint
from router_ext.model.snapshot import BackendState, Health
from tests.fakes.domain import backend, record, router
from tests.fakes.rig import EngineRig


def test_a_slot_counts_up_and_down() -> None:
    """It starts down and idle, and never counts below zero."""
    slot = Slot(backend())
    assert slot.state == BackendState(backend(), Health.DOWN, 0)
    slot.acquire()
    slot.acquire()
    slot.release()
    assert slot.state.in_flight == 1
    slot.release()
    with pytest.raises(RuntimeError, match="released more often than acquired"):
        slot.release()


def test_a_backend_that_stays_at_its_endpoint_keeps_its_state() -> None:
    """Other settings of it are taken over."""
    pool = Pool()
    pool.configure([backend()])
    pool["a"].acquire()
    pool["a"].probed(Health.DEGRADED, 0.0, alive=False)
    pool.configure([backend(room=1), backend("b")])
    assert pool["a"].state == BackendState(backend(room=1), Health.DEGRADED, 1)
    assert pool["b"].state == BackendState(backend("b"), Health.DOWN, 0)


def test_a_backend_at_another_endpoint_starts_anew() -> None:
    """Also under the same name."""
    pool = Pool()
    pool.configure([backend()])
    pool["a"].acquire()
    pool["a"].probed(Health.HEALTHY, 0.0, alive=True)
    moved = backend(endpoint=Endpoint("http", "a", 8001))
    pool.configure([moved])
    assert pool["a"].state == BackendState(moved, Health.DOWN, 0)


def test_a_snapshot_shows_every_backend_as_it_is_now() -> None:
    """In the configuration's order; it follows the slots, each by its own state."""
    pool = Pool()
    pool.configure([backend("b"), backend("a")])
    states = pool.snapshot()
    before = states["a"]
    pool["a"].acquire()
    assert (before.in_flight, states["a"].in_flight, states["b"].in_flight) == (0, 1, 0)
    assert [*states] == [*pool.slots()] == ["b", "a"]
    assert pool.get("c") is None


def test_a_slot_that_was_replaced_shows_nowhere() -> None:
    """Its last requests end on it, not on the backend that took its name."""
    pool = Pool()
    pool.configure([backend()])
    old = pool["a"]
    old.acquire()
    pool.configure([])
    pool.configure([backend()])
    pool["a"].acquire()
    old.release()
    assert old.state.in_flight == 0
    assert pool.snapshot()["a"].in_flight == 1


def test_a_reload_keeps_the_counts_of_requests_in_flight() -> None:
    """They end on the slot that they began on."""
    rig = EngineRig(router(backend()))
    rig.forward()
    rig.engine.configure(router(replace(backend(), max_concurrent=9), backend("b")))
    assert rig.in_flight() == {"a": 1, "b": 0}
    rig.engine.settle(record("t-1"))
    assert rig.in_flight() == {"a": 0, "b": 0}


@pytest.mark.parametrize(
    ("surpluses", "ended_per_s", "lost"),
    [
        ([1, 1, 1, 1], 0, [0, 0, 0, 0]),
        ([1, 1, 1, 1, 1], 0, [0, 0, 0, 0, 1]),
        ([3, 5, 2, 9, 4], 0, [0, 0, 0, 0, 2]),
        ([1, 1, 0, 1, 1, 1, 1], 0, [0] * 7),
        ([1, 1, 0, 1, 1, 1, 1, 1], 0, [0] * 7 + [1]),
        ([1] * 10, 0, [0, 0, 0, 0, 1, 0, 0, 0, 0, 1]),
        ([-4] * 5, 0, [0] * 5),
        ([2] * 5, 8, [0] * 5),
        ([3] * 5, 8, [0, 0, 0, 0, 1]),
        ([3] * 5, 8.1, [0] * 5),
    ],
)
def test_a_leak_is_a_surplus_that_stays_over_five_looks(
    surpluses: list[int], ended_per_s: float, lost: list[int]
) -> None:
    """Beyond what may be under way: the ends of a quarter of a second, rounded up. A loss starts the looks anew."""
    meter = LeakMeter()
    assert [meter.observe(surplus, ended_per_s) for surplus in surpluses] == lost
