"""Which variant callers get: shares, stability and the key."""

import pytest

from router_ext.routing.split import caller_key, variant

KEYS = [f"user-{number}" for number in range(20_000)]


def of_b(split_pct: float, test_name: str = "cheaper") -> set[str]:
    """The keys that get variant B."""
    return {key for key in KEYS if variant(test_name, key, split_pct) == "b"}


@pytest.mark.parametrize("split_pct", [0.5, 1, 10, 33.3, 50, 80, 99.5])
def test_the_share_of_b_is_the_percentage(split_pct: float) -> None:
    """Within one percent of 20,000 keys."""
    assert abs(len(of_b(split_pct)) - split_pct / 100 * 20_000) <= 200


def test_nobody_gets_b_at_0_and_everybody_at_100() -> None:
    """Exactly."""
    assert len(of_b(0)) == 0
    assert len(of_b(100)) == 20_000


@pytest.mark.parametrize(("less", "more"), [(0, 1), (20, 30), (49.9, 50), (99, 100)])
def test_another_percentage_moves_only_the_difference(less: float, more: float) -> None:
    """Who had B at the lower one has it at the higher one, too."""
    fewer, rest = of_b(less), of_b(more) - of_b(less)
    assert fewer <= of_b(more)
    assert abs(len(rest) - (more - less) / 100 * 20_000) <= 200


def test_a_caller_keeps_its_variant() -> None:
    """In every release: these were computed once, and another hash would move callers of running tests."""
    variants = "".join(variant("cheaper", f"user-{number}", 50) for number in range(24))
    assert variants == "aabababbaaabaababababbaa"


def test_tests_are_independent() -> None:
    """A quarter has B in both of two tests with halves: who got it in one is no more likely to get it in another."""
    assert abs(len(of_b(50, "cheaper") & of_b(50, "faster")) - 5_000) <= 200


def test_name_and_key_are_told_apart() -> None:
    """Test ``a`` for ``bc`` is not test ``ab`` for ``c``."""
    numbers = range(100)
    assert [variant("a", f"b{n}", 50) for n in numbers] != [variant("ab", str(n), 50) for n in numbers]


def test_any_text_is_a_key() -> None:
    """Empty or not ASCII."""
    assert {variant("cheaper", key, 100) for key in ("", "Zoë", "日本", "x" * 10_000)} == {"b"}


@pytest.mark.parametrize(
    ("persona", "session", "request_id", "key"),
    [
        ("anna", "sess_1", "w0-7", "anna"),
        ("anna", "", "w0-7", "anna"),
        ("", "sess_1", "w0-7", "sess_1"),
        ("", "", "w0-7", "w0-7"),
    ],
)
def test_a_caller_is_its_persona_else_its_session_else_the_request(
    persona: str, session: str, request_id: str, key: str
) -> None:
    """The first that is there."""
    assert caller_key(persona, session, request_id) == key
