"""BRK-06: a backend that failed every request stayed in rotation, or came back before its time."""

from collections.abc import Iterator

from router_ext.health.breaker import Breaker
from router_ext.model.backend import CircuitBreaker
from tests.fakes.clock import FakeClock

INTERVAL_S = 20.0


class _Probing:
    """Probes an open breaker when it says so; the health page answers from ``alive_from_s`` on."""

    def __init__(self, breaker: Breaker, alive_from_s: float) -> None:
        self.breaker = breaker
        self.alive_from_s = alive_from_s
        self.attempt = 0
        self.waited_since = 0.0

    def opened(self, now: float) -> None:
        self.attempt, self.waited_since = 0, now

    def look(self, now: float) -> None:
        due = self.waited_since + self.breaker.probe_delay_s(self.attempt, INTERVAL_S)
        if self.breaker.is_open and now >= due:
            self.attempt, self.waited_since = self.attempt + 1, now
            self.breaker.probed(now, alive=now >= self.alive_from_s)


def _hits(seconds: int, alive_from_s: float) -> Iterator[int]:
    """The seconds at which backend-1, which always answers 500, gets a request: there is one every 3 s.

    Two workers, which look at one breaker, serve them in turn; backend-2 gets what they keep from it.
    """
    clock, breaker = FakeClock(0.0), Breaker(CircuitBreaker(error_threshold=3, window_s=60.0))
    workers, probing = (breaker, breaker), _Probing(breaker, alive_from_s)
    for second in range(seconds):
        probing.look(clock.now_s)
        if second % 3 == 0 and not workers[second // 3 % 2].is_open:
            yield second
            if breaker.error(clock.now_s, clock.now_s):
                probing.opened(clock.now_s)
        clock.advance(1.0)


def test_a_backend_that_always_fails_is_out_by_the_configured_count() -> None:
    """Three of the sixty requests of three minutes reach it, and none after, whichever worker has it."""
    assert list(_hits(180, alive_from_s=10_000.0)) == [0, 3, 6]


def test_it_stays_out_until_a_probe_says_otherwise() -> None:
    """The health page answers from second 100 on; it is asked at 7, 8, 9, 11, 15, 23, 39, 59, 79, 99 and 119."""
    assert list(_hits(180, alive_from_s=100.0))[:6] == [0, 3, 6, 120, 123, 126]


def test_a_health_page_that_always_answers_brings_it_back_less_and_less_often() -> None:
    """Probes come after 1, 1, 1, 2, 4, 8, 16 and then 20 s, the waits of half a second seen once a second."""
    assert list(_hits(180, alive_from_s=0.0)) == [
        *(0, 3, 6),
        *(9, 12, 15),
        *(18, 21, 24),
        *(27, 30, 33),
        *(36, 39, 42),
        *(48, 51, 54),
        *(63, 66, 69),
        *(87, 90, 93),
        *(114, 117, 120),
        *(141, 144, 147),
        *(168, 171, 174),
    ]
