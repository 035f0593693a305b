"""AB-01: callers changed variants at random, and most of them whenever a weight was changed."""

import subprocess
import sys

from router_ext.routing.split import variant

USERS = [f"user-{number}" for number in range(10_000)]


def of_b(split_pct: float, test_name: str = "cheaper") -> set[str]:
    """The users that get variant B."""
    return {user for user in USERS if variant(test_name, user, split_pct) == "b"}


def test_from_80_to_70_percent_a_tenth_of_the_users_moves_to_the_other_variant() -> None:
    """And nobody moves the other way."""
    before, after = of_b(20), of_b(30)
    assert before < after
    assert abs(len(after - before) - 1_000) <= 100


def test_a_user_has_the_same_variant_in_every_process() -> None:
    """Whatever the seed of Python's own hashes is."""
    program = (
        "from router_ext.routing.split import variant\n"
        "print(''.join(variant('cheaper', f'user-{number}', 20) for number in range(10_000)))"
    )
    mine = "".join(variant("cheaper", user, 20) for user in USERS)
    for seed in ("0", "1"):
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == mine


def test_who_gets_b_in_one_test_is_no_more_likely_to_get_it_in_another() -> None:
    """A fifth of a fifth has it in both."""
    assert abs(len(of_b(20, "cheaper") & of_b(20, "faster")) - 400) <= 60
