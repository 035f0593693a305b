"""The block cache of the simulated engine."""

from router_ext.demo.sim.prefix_cache import PrefixCache


def test_only_leading_blocks_match() -> None:
    """A hole ends the prefix."""
    cache = PrefixCache(10)
    cache.insert([1, 2, 4])
    assert cache.match([1, 2, 3, 4]) == 2
    assert cache.match([9, 1]) == 0
    assert cache.match([1, 2, 4]) == 3


def test_the_least_recently_used_chain_goes_first_and_its_tail_before_its_head() -> None:
    """Room for 4: the older chain loses its last block."""
    cache = PrefixCache(4)
    cache.insert([1, 2, 3])
    cache.insert([7, 8])
    assert cache.match([1, 2, 3]) == 2
    assert cache.match([7, 8]) == 2


def test_using_a_chain_again_keeps_it() -> None:
    """The other one is evicted."""
    cache = PrefixCache(3)
    cache.insert([1, 2])
    cache.insert([7])
    cache.insert([1, 2])
    cache.insert([9])
    assert (cache.match([1, 2]), cache.match([7]), cache.match([9])) == (2, 0, 1)
