"""The backends as they live, and configurations that come and go."""

from dataclasses import replace
from pathlib import Path

import pytest

from router_ext.engine.pool import Pool, Slot
from router_ext.engine.reconcile import LeakMeter
from router_ext.engine.tally import MAX_BACKENDS, Tally, backend_key
from router_ext.health.load import QueueReading
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


def _workers(path: Path) -> tuple[Pool, Pool]:
    """The pools of two workers of one router, each with the backends ``a`` and ``b``."""
    Tally.create(path / "tally", 2)
    one, two = (Pool(Tally.open(path / "tally", worker)) for worker in range(2))
    for pool in (one, two):
        pool.configure([backend(), backend("b")])
    return one, two


def test_the_requests_of_all_workers_are_in_flight(tmp_path: Path) -> None:
    """A snapshot has them of that instant; a state between two snapshots has the others' as of the one before."""
    one, two = _workers(tmp_path)
    one["a"].acquire()
    two["a"].acquire()
    two["a"].acquire()
    assert one["a"].state.in_flight == 1
    assert [one.snapshot()[name].in_flight for name in ("a", "b")] == [3, 0]
    assert one["a"].state.in_flight == 3
    two["a"].release()
    one["a"].release()
    assert one["a"].state.in_flight == 2
    assert one.snapshot()["a"].in_flight == two.snapshot()["a"].in_flight == 1
    assert (one["a"].own_in_flight, two["a"].own_in_flight) == (0, 1)


def test_a_worker_cannot_release_what_another_one_sent(tmp_path: Path) -> None:
    """Its own count is what never goes below zero."""
    one, two = _workers(tmp_path)
    two["a"].acquire()
    assert one.snapshot()["a"].in_flight == 1
    with pytest.raises(RuntimeError, match="released more often than acquired"):
        one["a"].release()
    assert two.snapshot()["a"].in_flight == 1


def test_what_other_workers_send_after_a_scrape_adds_to_its_load(tmp_path: Path) -> None:
    """And what they had sent before is in the reading: the router's own are those of all workers."""
    one, two = _workers(tmp_path)
    two["a"].acquire()
    two["a"].acquire()
    one["a"].scraped(QueueReading(waiting=1, running=4), 0.0)
    assert (one["a"].state.in_flight, one["a"].state.load) == (2, 5)
    two["a"].acquire()
    assert one.snapshot()["a"].load == 6


def test_requests_of_a_backend_that_was_replaced_are_still_seen_by_other_workers(tmp_path: Path) -> None:
    """It is the same upstream, whichever configuration they were sent under. At another endpoint it is not."""
    one, two = _workers(tmp_path)
    old = two["a"]
    old.acquire()
    two.configure([backend("b")])
    two.configure([backend("a"), backend("b")])
    two["a"].acquire()
    assert (one.snapshot()["a"].in_flight, two.snapshot()["a"].in_flight) == (2, 1)
    old.release()
    assert one.snapshot()["a"].in_flight == 1
    two.configure([backend(endpoint=Endpoint("http", "a", 8001))])
    two["a"].acquire()
    assert one.snapshot()["a"].in_flight == 1


def test_ends_at_other_workers_are_told_once(tmp_path: Path) -> None:
    """Whoever looked in between, for a decision or with a scrape; begins are none."""
    one, two = _workers(tmp_path)
    two["a"].acquire()
    two["b"].acquire()
    assert not one.ended_elsewhere()
    two["a"].release()
    one.snapshot()
    assert [one.ended_elsewhere(), one.ended_elsewhere()] == [True, False]
    two["b"].release()
    one["b"].scraped(None, 0.0)
    one["a"].acquire()
    one["a"].release()
    assert [one.ended_elsewhere(), one.ended_elsewhere()] == [True, False]
    assert not Pool().ended_elsewhere()


def test_backends_that_the_tally_has_no_place_for_are_named(tmp_path: Path) -> None:
    """Those beyond 1,024; other workers do not see their requests."""
    one, two = _workers(tmp_path)
    many = [backend(f"n{number}") for number in range(MAX_BACKENDS + 1)]
    for backends, alone in ((many[:-1], []), (many, ["n1024"])):
        one.configure(backends)
        two.configure(backends)
        assert [*one.counted_alone] == [*two.counted_alone] == alone
    for name in ("n1023", "n1024"):
        two[name].acquire()
        two[name].acquire()
    one["n1024"].acquire()
    states = one.snapshot()
    assert (states["n1023"].in_flight, states["n1024"].in_flight) == (2, 1)


def test_a_slot_knows_its_backend_in_the_tally() -> None:
    """Also where there is none."""
    assert Slot(backend()).key == backend_key(backend())
    assert Slot(backend()).others_in_flight() == 0


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
