"""SLA-04: one bad sample banned a backend for good, and one without samples got everything."""

from router_ext.health.latency import TtftWindow
from router_ext.model.snapshot import NO_SAMPLES


def _window(*times_s: float) -> TtftWindow:
    """Times that all came at 1000 s."""
    window = TtftWindow()
    for ttft_s in times_s:
        window.add(ttft_s, 1000.0)
    return window


def test_one_cold_start_bans_nobody() -> None:
    """A single sample of 30 s is known, by the stated method, but not acted on."""
    stats = _window(30.0).stats
    assert (stats.samples, stats.p95_ms) == (1, 30_000.0)
    assert not stats.is_telling(1000.0)


def test_a_cold_start_among_twenty_is_not_the_95th_percentile() -> None:
    """It is the value at position 19 of 20."""
    stats = _window(30.0, *[1.0] * 19).stats
    assert stats.p95_ms == 1_000.0
    assert stats.is_telling(1000.0)


def test_samples_expire() -> None:
    """A backend without traffic is unknown again after 300 s."""
    stats = _window(*[1.0] * 200).stats
    assert (stats.samples, stats.p95_ms) == (100, 1_000.0)
    assert stats.is_telling(1300.0)
    assert not stats.is_telling(1300.1)


def test_an_empty_window_is_unknown() -> None:
    """Not 0, not infinity, and no exception."""
    assert _window().stats is NO_SAMPLES
    assert not NO_SAMPLES.is_telling(1000.0)
