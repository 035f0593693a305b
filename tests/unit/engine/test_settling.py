"""The end of an exchange."""

import math
from pathlib import Path

import pytest

from router_ext.engine.attempts import Attempt
from router_ext.engine.exchanges import OpenExchange, OpenExchanges
from router_ext.engine.pool import Slot
from router_ext.engine.tally import Tally
from router_ext.model.decision import Decision
from router_ext.model.snapshot import Health
from tests.fakes.clock import FakeClock
from tests.fakes.domain import backend, record, request, router
from tests.fakes.rig import EngineRig

STREAM = b'{"model":"m-a","stream":true}'


def _rig() -> EngineRig:
    return EngineRig(router(backend()))


def _started(rig: EngineRig, body: bytes = STREAM) -> str:
    return rig.forward(body).metadata["id"]


def test_an_exchange_is_settled_exactly_once() -> None:
    """A second entry of the same id, or of an unknown one, changes nothing."""
    rig = _rig()
    one, _ = _started(rig), _started(rig)
    assert rig.in_flight() == {"a": 2}
    for decision_id in (one, one, "t-99", "other-1"):
        rig.engine.settle(record(decision_id))
    assert rig.in_flight() == {"a": 1}
    assert [end.decision.id for end in rig.telemetry.ends] == [one]


def test_the_first_token_is_timed_from_the_decision() -> None:
    """A later report of the same exchange, or one after its end, changes nothing."""
    rig = _rig()
    decision_id = _started(rig)
    rig.clock.advance(0.25)
    rig.engine.first_token(decision_id)
    rig.clock.advance(5)
    rig.engine.first_token(decision_id)
    rig.engine.settle(record(decision_id))
    rig.engine.first_token(decision_id)
    rig.engine.first_token("")
    assert rig.telemetry.ends[0].ttft_s == 0.25


@pytest.mark.parametrize(("body", "ttft_s"), [(STREAM, None), (b'{"model":"m-a"}', 1.5)])
def test_an_answer_that_is_not_streamed_counts_from_its_last_byte(body: bytes, ttft_s: float | None) -> None:
    """A stream without a token has no such time."""
    rig = _rig()
    rig.engine.settle(record(_started(rig, body), last_upstream_byte_s=1.5))
    assert rig.telemetry.ends[0].ttft_s == ttft_s


@pytest.mark.parametrize(
    ("status", "answered"), [(0, False), (200, True), (404, True), (499, True), (500, False), (503, False)]
)
def test_an_answer_below_500_proves_that_the_backend_lives(status: int, answered: bool) -> None:
    """0 means that no response began."""
    rig = _rig()
    rig.engine.settle(record(_started(rig), status))
    assert rig.engine.pool["a"].answered_at == (rig.clock.now_s if answered else -math.inf)


@pytest.mark.parametrize(
    ("reached", "route", "counted"),
    [(True, "fail-open", True), (False, "fail-open", False), (False, "session-needs-router", True)],
)
def test_a_request_that_the_router_did_not_see_is_counted(reached: bool, route: str, counted: bool) -> None:
    """When it reached a backend, or was refused because only the router could serve it."""
    rig = _rig()
    rig.engine.settle(record("", upstream_reached=reached, route=route))
    assert len(rig.telemetry.bypasses) == int(counted)
    assert rig.telemetry.ends == []


def test_health_of_a_backend_that_is_gone_is_ignored() -> None:
    """A probe may end after a reload."""
    rig = _rig()
    rig.engine.configure(router(backend("b")))
    rig.engine.set_health("a", Health.HEALTHY)
    assert rig.in_flight() == {"b": 0}


def _look(rig: EngineRig, times: int, **active: int) -> None:
    for _ in range(times):
        rig.clock.advance(1)
        rig.engine.reconcile({f"backend-{name}": count for name, count in active.items()})


def test_exchanges_that_envoy_no_longer_has_are_given_up_after_five_looks() -> None:
    """The oldest first; their late entries are still settled, without being released twice."""
    rig = _rig()
    first, second = _started(rig), _started(rig)
    _look(rig, 4, a=1)
    assert rig.in_flight() == {"a": 2}
    _look(rig, 1, a=1)
    assert rig.in_flight() == {"a": 1}
    assert [decision.id for decision in rig.telemetry.losses] == [first]
    for decision_id in (first, first, second):
        rig.engine.settle(record(decision_id))
    assert rig.in_flight() == {"a": 0}
    assert [end.decision.id for end in rig.telemetry.ends] == [first, second]


def test_a_cluster_that_envoy_does_not_list_has_no_open_requests() -> None:
    """As after a reload that removed it; an empty page says nothing about anything."""
    rig = _rig()
    _started(rig)
    _look(rig, 20)
    assert len(rig.engine.exchanges) == 1
    _look(rig, 5, b=0)
    assert len(rig.engine.exchanges) == 0
    assert rig.in_flight() == {"a": 0}


def test_entries_on_their_way_are_no_loss() -> None:
    """With eight ends a second up to two entries may be under way; a third that stays is a loss."""
    rig = EngineRig(router(backend()))
    for _ in range(3):
        _started(rig)
    for _ in range(5):
        for decision_id in [_started(rig) for _ in range(8)]:
            rig.engine.settle(record(decision_id))
        _look(rig, 1, a=1)
    assert rig.in_flight() == {"a": 3}
    for _ in range(5):
        for decision_id in [_started(rig) for _ in range(8)]:
            rig.engine.settle(record(decision_id))
        _look(rig, 1, a=0)
    assert rig.in_flight() == {"a": 2}


def test_those_longest_at_their_present_backend_are_given_up_first() -> None:
    """A request that has failed over may be older, but has not been there for as long."""
    slots = {name: Slot(backend(name)) for name in ("a", "b")}
    sent = (("moved", "b", 7.0), ("on-a", "a", 2.0), ("late", "b", 9.0), ("early", "b", 3.0), ("same", "b", 3.0))
    exchanges = OpenExchanges()
    for name, at, started_at in sent:
        decision = Decision(name, 0.0, request(), "r", at, "m", ())
        exchanges.begin(OpenExchange(Attempt(decision, slots[at], started_at), 0.0))
    assert [item.id for item in exchanges.give_up("backend-b", 1)] == ["early"]
    assert [item.id for item in exchanges.give_up("backend-b", 3, sent_by=7.0)] == ["same", "moved"]
    assert [item.id for item in exchanges.give_up("backend-b", 3, sent_by=8.9)] == []
    assert len(exchanges) == 2


def _workers(path: Path) -> tuple[EngineRig, EngineRig]:
    """Two workers of one router on one clock."""
    Tally.create(path / "tally", 2)
    clock, config = FakeClock(), router(backend())
    one, two = (EngineRig(config, clock, tally=Tally.open(path / "tally", worker)) for worker in range(2))
    return one, two


def _looks(one: EngineRig, two: EngineRig, times: int, **active: int) -> None:
    """Each worker looks once a second, the first one first."""
    for _ in range(times):
        _look(one, 1, **active)
        two.engine.reconcile({f"backend-{name}": count for name, count in active.items()})


def test_requests_of_other_workers_are_no_loss(tmp_path: Path) -> None:
    """Envoy counts those of all workers, and so does each of them."""
    one, two = _workers(tmp_path)
    for rig in (one, two, two):
        _started(rig)
    _looks(one, two, 20, a=3)
    assert one.in_flight() == two.in_flight() == {"a": 3}


def test_a_loss_that_all_workers_see_is_given_up_once(tmp_path: Path) -> None:
    """By the one that looks first; of what it cannot account for the next one gives up the rest."""
    one, two = _workers(tmp_path)
    for rig in (one, two, two, two):
        _started(rig)
    _looks(one, two, 4, a=3)
    assert one.in_flight() == {"a": 4}
    _looks(one, two, 6, a=3)
    assert [len(rig.telemetry.losses) for rig in (one, two)] == [1, 0]
    assert one.in_flight() == two.in_flight() == {"a": 3}
    _looks(one, two, 5, a=1)
    assert [len(rig.telemetry.losses) for rig in (one, two)] == [1, 2]
    assert one.in_flight() == two.in_flight() == {"a": 1}


def test_only_what_was_open_at_each_of_the_looks_is_given_up(tmp_path: Path) -> None:
    """Three are lost, of which the first worker can have one only: its other request began after the first look."""
    one, two = _workers(tmp_path)
    for rig in (one, two, two):
        _started(rig)
    _look(one, 1, a=0)
    one.clock.advance(0.1)
    _started(one)
    _look(one, 4, a=1)
    assert [decision.id for decision in one.telemetry.losses] == ["t-1"]
    assert one.in_flight() == {"a": 3}
    _look(two, 5, a=1)
    assert [decision.id for decision in two.telemetry.losses] == ["t-1", "t-2"]


def test_a_worker_that_gave_up_the_wrong_exchange_leaves_the_sum_right(tmp_path: Path) -> None:
    """The first worker gives up its own, which is alive. Its end is not counted, so the loss shows again, and now the
    second worker is the one that has any. At the first of six looks the end may still be under way.
    """
    one, two = _workers(tmp_path)
    alive, lost = _started(one), _started(two)
    _looks(one, two, 5, a=1)
    assert [decision.id for decision in one.telemetry.losses] == [alive]
    assert two.in_flight() == {"a": 1}
    one.engine.settle(record(alive))
    assert two.in_flight() == {"a": 1}
    _looks(one, two, 6, a=0)
    assert [decision.id for decision in two.telemetry.losses] == [lost]
    assert one.in_flight() == two.in_flight() == {"a": 0}


def test_entries_on_their_way_to_other_workers_are_no_loss(tmp_path: Path) -> None:
    """The second worker ends eight a second, of which two may be under way; the first one must know that."""
    one, two = _workers(tmp_path)
    for rig in (one, one, one):
        _started(rig)
    for active, left in ((1, 3), (0, 2)):
        for _ in range(6):
            for decision_id in [_started(two) for _ in range(8)]:
                two.engine.settle(record(decision_id))
            one.clock.advance(1)
            two.engine.reconcile({"backend-a": active})
            one.engine.reconcile({"backend-a": active})
        assert one.in_flight() == {"a": left}


def test_a_worker_that_died_has_nothing_open(tmp_path: Path) -> None:
    """As soon as its row is empty; until Envoy ends its requests too, nothing else seems lost."""
    one, two = _workers(tmp_path)
    _started(one)
    _started(two)
    assert one.in_flight() == {"a": 2}
    Tally.open(tmp_path / "tally", 1)
    assert one.in_flight() == {"a": 1}
    _look(one, 10, a=2)
    assert one.telemetry.losses == []
