"""The end of an exchange."""

import math

import pytest

from router_ext.model.snapshot import Health
from tests.fakes.domain import backend, record, router
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
