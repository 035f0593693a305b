"""How many sessions a machine can bear."""

from benchmarks.sessions.footprint import SESSIONS, affordable

NEEDED = 1_040_000_000
"""Free bytes for 1,000 sessions: 400,000 bytes each, 1.3 times that in the store, half of the memory left alone."""


def test_a_machine_with_enough_memory_gets_all_sessions() -> None:
    """The boundary is where a store takes half of what is free; more memory means no more sessions."""
    assert affordable(NEEDED) == SESSIONS == 1000
    assert affordable(100 * NEEDED) == 1000


def test_a_machine_with_less_memory_gets_fewer() -> None:
    """In proportion, rounded down."""
    assert affordable(NEEDED - 1) == 999
    assert affordable(NEEDED // 4) == 250


def test_a_machine_without_memory_gets_one() -> None:
    """A figure needs a session."""
    assert affordable(0) == 1
