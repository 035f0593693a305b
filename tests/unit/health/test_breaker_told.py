"""A breaker that follows the one of another router."""

from router_ext.health.breaker import Breaker
from router_ext.model.backend import CircuitBreaker

TWO_IN_TEN = CircuitBreaker(error_threshold=2, window_s=10.0)


def test_it_follows_once() -> None:
    """What is so already changes nothing."""
    breaker = Breaker(TWO_IN_TEN)
    told = [breaker.told(100.0, is_open=is_open) for is_open in (False, True, True, False, False)]
    assert told == [False, True, False, True, False]


def test_an_own_good_probe_closes_what_was_opened_from_outside() -> None:
    """A bad one does not."""
    breaker = Breaker(TWO_IN_TEN)
    breaker.told(100.0, is_open=True)
    assert [breaker.probed(101.0, False), breaker.probed(102.0, True), breaker.is_open] == [False, True, False]


def test_closing_from_outside_forgets_the_errors() -> None:
    """It takes as many as ever to open it again."""
    breaker = Breaker(TWO_IN_TEN)
    breaker.error(100.0, 100.0)
    breaker.told(101.0, is_open=True)
    breaker.told(102.0, is_open=False)
    assert [breaker.error(103.0, 103.0), breaker.error(104.0, 104.0)] == [False, True]


def test_opening_from_outside_within_a_minute_of_a_closing_is_a_relapse() -> None:
    """Else every router would probe at once, and let requests run into a backend whose health page alone is well."""
    for age_s, delay_s in ((60.0, 0.5), (60.25, 0.0)):
        breaker = Breaker(TWO_IN_TEN)
        breaker.told(100.0, is_open=True)
        breaker.told(200.0, is_open=False)
        breaker.told(200.0 + age_s, is_open=True)
        assert breaker.probe_delay_s(0, 30.0) == delay_s
