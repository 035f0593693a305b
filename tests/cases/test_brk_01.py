"""BRK-01: a probe that ended neither well nor badly kept its slot, and the backend stayed out for good."""

import pytest

from router_ext.health.breaker import Breaker
from router_ext.health.failures import failure_of, is_backend_error
from router_ext.health.probe import ProbeResult, result_of_status
from router_ext.model.backend import CircuitBreaker
from tests.fakes.domain import record

ALIVE = {ProbeResult.OK, ProbeResult.ODD}


def _answer(breaker: Breaker, status: int, now: float) -> None:
    """A request ends with this status."""
    if is_backend_error(failure_of(record("t-1", status))):
        breaker.error(now, now - 0.1)


def _open_breaker() -> Breaker:
    breaker = Breaker(CircuitBreaker(5, 10.0))
    for at in range(5):
        _answer(breaker, 503, 100.0 + at)
    assert breaker.is_open
    return breaker


@pytest.mark.parametrize("status", [400, 404, 422, 200])
def test_a_probe_that_is_answered_closes_the_breaker(status: int) -> None:
    """A 4xx proves that the backend lives."""
    breaker = _open_breaker()
    assert breaker.probed(110.0, result_of_status(status) in ALIVE)
    assert not breaker.is_open


@pytest.mark.parametrize("end", [ProbeResult.FAILED, ProbeResult.SLOW, ProbeResult.UNREACHABLE])
def test_a_probe_that_ends_otherwise_leaves_the_way_free_for_the_next(end: ProbeResult) -> None:
    """Nothing is held between two probes, nor by one that never ends."""
    breaker = _open_breaker()
    assert not breaker.probed(110.0, end in ALIVE)
    assert breaker.probe_delay_s(1, 30.0) == 0.5
    assert breaker.probed(110.5, alive=True)


@pytest.mark.parametrize("status", [400, 404, 422, 429, 200])
def test_other_answers_neither_count_nor_clear(status: int) -> None:
    """Four errors, such an answer, and the fifth error opens it."""
    breaker = Breaker(CircuitBreaker(5, 10.0))
    for at in range(4):
        _answer(breaker, 503, 100.0 + at)
    _answer(breaker, status, 104.0)
    assert not breaker.is_open
    _answer(breaker, 503, 105.0)
    assert breaker.is_open
