"""Who can take a request now: each filter, on both sides of its boundary, with the reason that it gives."""

import pytest

from router_ext.model.rule import Rule
from router_ext.model.snapshot import BackendState, Health
from router_ext.routing.asked import Asked
from router_ext.routing.filters.availability import Drained, Healthy, Paused, Room, Tried
from tests.fakes.domain import backend, request

PLAIN = Rule("r")
ASKED = Asked(request(), {}, now=100.0)


def test_a_drained_backend_is_left_out() -> None:
    """However well it is."""
    states = [BackendState(backend("a"), Health.HEALTHY, drained=True), BackendState(backend("b"), Health.HEALTHY)]
    assert Drained().removed(states, ASKED, PLAIN) == {"a": "is drained"}


def test_only_down_is_unavailable() -> None:
    """A degraded backend still takes requests."""
    states = [BackendState(backend(health.value), health) for health in Health]
    assert Healthy().removed(states, ASKED, PLAIN) == {"down": "is down"}


def test_an_open_circuit_breaker_is_the_reason_of_a_backend_that_is_down_for_it() -> None:
    """Its probes may be fine."""
    states = [BackendState(backend("a"), Health.DOWN, tripped=True), BackendState(backend("b"), Health.DOWN)]
    assert Healthy().removed(states, ASKED, PLAIN) == {"a": "its circuit breaker is open", "b": "is down"}


def test_room_ends_at_max_concurrent() -> None:
    """One below the limit is taken, at the limit it is not."""
    states = [BackendState(backend(str(n), room=2), Health.HEALTHY, in_flight=n) for n in (1, 2, 3)]
    assert Room().removed(states, ASKED, PLAIN) == {"2": "serves 2 of 2", "3": "serves 3 of 2"}


def test_a_backend_that_failed_the_request_is_left_out() -> None:
    """Names of backends that are no candidates do not matter."""
    states = [BackendState(backend(name), Health.HEALTHY) for name in "abc"]
    asked = Asked(request(), {}, tried=frozenset({"a", "c", "gone"}))
    reason = "has already failed this request"
    assert Tried().removed(states, asked, PLAIN) == {"a": reason, "c": reason}
    assert Tried().removed(states, ASKED, PLAIN) == {}


@pytest.mark.parametrize(("until", "left"), [(112.0, 12), (111.1, 12), (111.0, 11), (100.001, 1)])
def test_a_backend_that_asked_for_a_pause_is_left_out_until_it_has_passed(until: float, left: int) -> None:
    """The reason has the seconds that are left, rounded up."""
    states = [BackendState(backend("a"), Health.HEALTHY, paused_until=until)]
    assert Paused().removed(states, ASKED, PLAIN) == {"a": f"asked for a pause of {left} s more"}


@pytest.mark.parametrize("until", [100.0, 99.0])
def test_a_pause_that_has_passed_is_over(until: float) -> None:
    """At its very end it is; a backend that never asked for one has none."""
    states = [BackendState(backend("a"), Health.HEALTHY, paused_until=until), BackendState(backend(), Health.HEALTHY)]
    assert Paused().removed(states, ASKED, PLAIN) == {}
