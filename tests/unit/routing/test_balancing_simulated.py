"""Both policies over simulated engines, on a small scale; ``python -m benchmarks.routing`` is the large one."""

import pytest

from benchmarks.routing.policies import PIN, PREDICTED
from benchmarks.routing.simulation import simulate
from benchmarks.routing.trace import hot_prefix, turn

CAPACITY = 4000


@pytest.mark.parametrize("policy", [PIN, PREDICTED])
def test_a_system_prompt_of_all_clients_does_not_overload_one_node(policy: str) -> None:
    """Four nodes, each with at most one and a half times the mean; nearly all of the prompt is cached."""
    result = simulate(hot_prefix(800, 20.0), policy, 4, CAPACITY)
    assert result.max_over_mean <= 1.5
    assert result.hit >= 0.8


@pytest.mark.parametrize("policy", [PIN, PREDICTED])
def test_a_burst_of_first_turns_spreads(policy: str) -> None:
    """40 at once: ten for each of four nodes, none of which has learned anything."""
    burst = [turn(1.0, 8192, 100, tuple(range(16))) for _ in range(40)]
    assert simulate(burst, policy, 4, CAPACITY).max_over_mean == pytest.approx(1.0)


@pytest.mark.parametrize("policy", [PIN, PREDICTED])
def test_a_conversation_stays_where_its_prefix_is(policy: str) -> None:
    """20 conversations of five turns, one second apart: each later turn finds all before it."""
    turns = [
        turn(
            second + client / 40, 512 * 10 * (second + 1), 5, tuple(1000 * client + i for i in range(10 * second + 10))
        )
        for second in range(5)
        for client in range(20)
    ]
    result = simulate(turns, policy, 8, CAPACITY)
    cached_at_best = (10 + 20 + 30 + 40) / (10 + 20 + 30 + 40 + 50)
    assert result.hit == pytest.approx(cached_at_best, rel=0.05)


@pytest.mark.parametrize("policy", [PIN, PREDICTED])
def test_a_replay_is_the_same_every_time(policy: str) -> None:
    """No clock and no chance."""
    turns = hot_prefix(300, 20.0)
    assert simulate(turns, policy, 4, CAPACITY) == simulate(turns, policy, 4, CAPACITY)
