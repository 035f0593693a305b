"""From measurements to figures."""

from benchmarks.gate import held, hostile, race
from benchmarks.gate.cpu import Cpu, added
from benchmarks.gate.report import ROWS, table


def test_processor_time_is_taken_apart() -> None:
    """That of the judges stays beside that of the router."""
    assert (Cpu(5.0, 3.0) - Cpu(1.0, 1.0)) / 2 == Cpu(2.0, 1.0)
    assert Cpu(2.0, 1.0).total == 3.0


def test_what_the_gate_adds_is_the_median_over_rounds() -> None:
    """In milliseconds, each round's gated request against its own plain one."""
    plain = Cpu(0.001, 0.0)
    pairs = [(plain, Cpu(0.0015, 0.0002)), (plain, Cpu(0.009, 0.009)), (Cpu(0.002, 0.0), Cpu(0.0021, 0.0001))]
    assert added("1kb", pairs) == {
        "gate_cpu_ms_1kb": 0.7,
        "gate_cpu_router_ms_1kb": 0.5,
        "gate_cpu_judges_ms_1kb": 0.2,
        "plain_cpu_ms_1kb": 1.0,
    }


def test_both_at_once_are_compared_with_the_fallback_alone() -> None:
    """Median against median."""
    seen = race.figures([0.30, 0.32, 9.0], [0.32, 0.352, 0.1])
    assert seen == {"parallel_vs_fallback": 1.0, "fallback_p50_ms": 320.0, "parallel_p50_ms": 320.0}


def test_a_held_stream_is_compared_with_a_plain_one() -> None:
    """Median against median."""
    assert held.figures([0.2, 0.21, 0.9], [0.3, 0.215, 0.2]) == {"held_stream_added_ms": 5.0, "stream_p50_ms": 210.0}


def test_the_delay_is_beyond_that_of_the_same_round() -> None:
    """The median over rounds; and the best round with hostile schemas beyond the best one without."""
    seen = hostile.figures([(0.01, 0.05), (0.02, 0.03), (0.1, 0.09)])
    assert seen == {
        "other_request_delay_ms_max": 10.0,
        "other_request_delay_ms_max_least": 20.0,
        "other_request_delay_ms_max_rounds": [40.0, 10.0, -10.0],
    }


def test_a_figure_meets_its_goal_up_to_the_goal_itself() -> None:
    """Both sides of the boundary of each goal."""
    goals = {"gate_cpu_ms_1kb": 1.0, "gate_cpu_ms_100kb": 5.0, "parallel_vs_fallback": 1.1}
    goals["other_request_delay_ms_max"] = 50.0
    assert [line.split()[-1] for line in table(goals)] == ["met"] * 4
    assert [line.split()[-1] for line in table({name: goal + 0.1 for name, goal in goals.items()})] == ["MISSED"] * 4
    assert {row.name: row.most for row in ROWS if row.most is not None} == goals
