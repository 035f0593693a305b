"""BRK-03: a breaker that tried out a hanging backend with all its traffic, and was moved by what came back late."""

from router_ext.health.breaker import Breaker
from router_ext.model.backend import CircuitBreaker
from tests.fakes.clock import FakeClock

HANGS_S = 30.0


def _send(breaker: Breaker, clock: FakeClock, count: int) -> list[float]:
    """So many requests within a second; when those started that reach the backend."""
    started = []
    for _ in range(count):
        if not breaker.is_open:
            started.append(clock.now_s)
        clock.advance(1.0 / count)
    return started


def _fail(breaker: Breaker, started: list[float]) -> list[bool]:
    """Each attempt fails when it has hung for 30 s."""
    return [breaker.error(at + HANGS_S, at) for at in started]


def _hung() -> tuple[Breaker, FakeClock, list[float]]:
    """A breaker at 1030 s that the first five of 500 attempts have opened; the other attempts are still out."""
    breaker, clock = Breaker(CircuitBreaker(5, 10.0)), FakeClock(1000.0)
    started = _send(breaker, clock, 500)
    assert _fail(breaker, started[:5]) == [False, False, False, False, True]
    clock.advance(HANGS_S)
    return breaker, clock, started[5:]


def test_no_request_tries_an_open_breaker_out() -> None:
    """Nor after any time: probes alone do that, and the prober sends one at a time."""
    breaker, clock, _ = _hung()
    assert _send(breaker, clock, 500) == []
    clock.advance(3600.0)
    assert _send(breaker, clock, 500) == []


def test_a_probe_that_hangs_lets_nothing_through() -> None:
    """500 requests in the second during which it is out."""
    breaker, clock, _ = _hung()
    assert not breaker.probed(clock.now_s, alive=False)
    assert _send(breaker, clock, 500) == []


def test_late_failures_do_not_open_what_a_probe_closed() -> None:
    """495 attempts from before the closing fail after it, and the backend has recovered."""
    breaker, _, late = _hung()
    assert breaker.probed(1030.01, alive=True)
    assert (len(late), any(_fail(breaker, late))) == (495, False)
    assert not breaker.is_open


def test_late_failures_do_not_add_up_with_new_ones() -> None:
    """It takes five of the new generation."""
    breaker, clock, late = _hung()
    breaker.probed(1030.01, alive=True)
    _fail(breaker, late)
    assert _fail(breaker, [clock.now_s] * 5) == [False, False, False, False, True]
