"""How far back a cache reaches."""

import math

import pytest

from router_ext.routing.reach import MAX_MARKS, CacheReach, is_hit


def _filled(times: int = 10, size: float = 1000) -> CacheReach:
    """``size`` was prefilled at each of the times 1, 2, 3 …"""
    reach = CacheReach()
    for now in range(1, times + 1):
        reach.prefilled(size, float(now))
    return reach


@pytest.mark.parametrize(("used_at", "depth"), [(10.0, 0), (9.0, 0), (8.0, 1000), (1.0, 8000), (0.5, 9000), (20.0, 0)])
def test_the_depth_of_a_prefix_is_what_was_prefilled_since_its_last_use(used_at: float, depth: float) -> None:
    """The first prefill after the use is not counted: the mark is coarse."""
    assert _filled().depth(used_at) == depth


def test_a_cache_is_not_known_to_end_before_a_prefix_was_gone() -> None:
    """However much it took in."""
    reach = _filled(100)
    assert reach.observe(50_000, 4000, 4000)
    assert reach.horizon() == -math.inf


def test_a_prefix_that_was_gone_says_where_the_cache_ends() -> None:
    """Gone at a depth of 5,000: at nine tenths of it, what was used before 4,500 were taken in is out of reach."""
    reach = _filled(10)
    reach.observe(0, 4000, 4000)
    assert not reach.observe(5000, 4000, 0)
    assert reach.horizon() == 5.0


def test_hits_near_the_edge_move_it_back() -> None:
    """A hit deeper than the reach is proof."""
    reach = _filled(10)
    reach.observe(5000, 4000, 1)
    assert reach.observe(7500, 4000, 4000)
    assert reach.horizon() == 2.0


def test_one_odd_report_does_not_end_all_pins() -> None:
    """A prefix that was gone at no depth, as after a restart, lowers the reach by a tenth at most."""
    reach = _filled(10)
    reach.observe(5000, 4000, 1)
    reach.observe(0, 4000, 0)
    assert reach.horizon() == 5.0


def test_the_cache_is_at_least_as_large_as_a_prompt_that_it_served() -> None:
    """A prefix of 4,000 was gone at a depth of 1,000: the reach is 4,000."""
    reach = _filled(10)
    reach.observe(1000, 4000, 1)
    assert reach.horizon() == 6.0


def test_a_cache_that_holds_more_than_predicted_moves_the_edge_back() -> None:
    """By a hundredth each time: 23 times make 4,000 into 5,000."""
    reach = _filled(10)
    reach.observe(1000, 4000, 1)
    for _ in range(22):
        reach.observe(0, 0, 4000)
    assert reach.horizon() == 5.0
    reach.observe(0, 0, 4000)
    assert reach.horizon() == 4.0


def test_a_reported_zero_is_a_report_from_the_first_one_on() -> None:
    """The predicted prefix was gone; an engine that does not report says nothing at all."""
    reach = _filled(10)
    assert not reach.observe(5000, 4000, 0)
    assert reach.horizon() > -math.inf


@pytest.mark.parametrize(
    ("predicted", "cached", "hit"),
    [(100_000, 87_952, True), (100_000, 87_951, False), (2000, 0, True), (0, 0, True), (4000, 9000, True)],
)
def test_a_hit_may_fall_short_by_a_tenth_and_two_kilobytes(predicted: float, cached: float, hit: bool) -> None:
    """Sizes are estimates, and caches keep whole blocks."""
    assert is_hit(predicted, cached) is hit


def test_the_past_takes_bounded_memory() -> None:
    """Old marks get sparse; depths stay about right and never too large."""
    reach = _filled(5 * MAX_MARKS)
    assert len(reach._marks) <= MAX_MARKS
    assert 5000 * 1000 * 0.99 <= reach.depth(5 * MAX_MARKS - 5000.0) <= 5000 * 1000
