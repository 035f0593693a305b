"""From answers and counts to figures."""

import pytest

from benchmarks.sessions.wire import Answer
from benchmarks.shadow.counts import NoShadowsError, check, counts
from benchmarks.shadow.report import ROWS, table
from benchmarks.shadow.rounds import Round, figures, round_of, turned
from benchmarks.shadow.stack import Arm

PAGE = """\
# TYPE kronaxis_router_shadow counter
kronaxis_router_shadow_total{result="compared",test="healthy"} 40.0
kronaxis_router_shadow_total{result="failed",test="healthy"} 2.0
kronaxis_router_shadow_total{result="no_primary",test="healthy"} 1.0
kronaxis_router_shadow_total{result="dropped",test="full"} 9.0
kronaxis_router_shadow_total{result="failed",test="full"} 5.0
kronaxis_router_shadow_total{result="dropped",test="hung"} 4.0
# TYPE kronaxis_router_backend_active_requests gauge
kronaxis_router_backend_active_requests{backend="large"} 8.0
kronaxis_router_backend_active_requests{backend="silent"} 51.0
"""


def answer(body: bytes = b"said", seconds: float = 0.1) -> Answer:
    """An answer to one request."""
    return Answer(200, {}, body, 1000, seconds)


def arms(**others: list[Answer]) -> dict[Arm, list[Answer]]:
    """Two answers of each arm, equal in all but those that are given."""
    return {arm: others.get(arm.value, [answer(), answer()]) for arm in Arm}


def round_with(inactive: float, hung: float, *, different: int = 0) -> Round:
    """A round whose p99 are these, in seconds; the other arms are as the inactive one."""
    return Round({arm: hung if arm is Arm.HUNG else inactive for arm in Arm}, 6, different)


def test_each_arm_with_shadows_is_compared_with_the_one_without() -> None:
    """Request by request."""
    assert round_of(arms()) == Round(dict.fromkeys(Arm, 0.1), 6, 0)


def test_one_other_byte_is_a_different_answer() -> None:
    """In any of the arms."""
    assert round_of(arms(full=[answer(), answer(b"sa1d")])).different == 1
    assert round_of(arms(inactive=[answer(b"said "), answer()])).different == 3


def test_equal_answers_in_another_order_are_different() -> None:
    """They are answers to other requests."""
    swapped = arms(inactive=[answer(b"1"), answer(b"2")], hung=[answer(b"2"), answer(b"1")])
    assert round_of(swapped | {Arm.HEALTHY: swapped[Arm.INACTIVE], Arm.FULL: swapped[Arm.INACTIVE]}).different == 2


def test_an_answer_too_few_is_no_round() -> None:
    """Every request has an answer in every arm."""
    with pytest.raises(ValueError, match="shorter"):
        round_of(arms(hung=[answer()]))


def test_each_arm_comes_first_in_turn() -> None:
    """And the fifth time the first one again."""
    assert [turned(number)[0].value for number in range(5)] == ["inactive", "healthy", "hung", "full", "inactive"]
    assert [arm.value for arm in turned(3)] == ["full", "inactive", "healthy", "hung"]


def test_the_p99_of_an_arm_is_that_of_its_answers() -> None:
    """The slowest but one of 101 to 199, by nearest rank."""
    given = [answer(seconds=seconds) for seconds in (0.9, 0.8, *[0.1] * 149)]
    assert round_of(dict.fromkeys(Arm, given)).p99_s[Arm.HUNG] == 0.8


def test_figures_are_medians_over_the_rounds_each_against_its_own() -> None:
    """Not the ratio of medians, which would be 1.5 here."""
    seen = figures([round_with(0.1, 0.11), round_with(0.2, 0.6), round_with(0.4, 0.3)])
    assert seen["p99_ratio_hung_shadow"] == 1.1
    assert seen["p99_ratio_hung_shadow_rounds"] == [1.1, 3.0, 0.75]
    assert seen["p99_added_ms_hung_shadow"] == 10.0
    assert (seen["p99_ratio_healthy_shadow"], seen["p99_ratio_full_shadow"]) == (1.0, 1.0)
    assert seen["p99_ms_inactive"] == 200.0


def test_bytes_are_equal_when_no_answer_of_any_round_differs() -> None:
    """One is enough."""
    equal = figures([round_with(0.1, 0.1), round_with(0.1, 0.1)])
    assert (equal["bytes_equal"], equal["answers_compared"], equal["answers_different"]) == (True, 12, 0)
    assert figures([round_with(0.1, 0.1), round_with(0.1, 0.1, different=1)])["bytes_equal"] is False


def test_counts_are_those_of_the_test_that_they_are_told_of() -> None:
    """And of the backend that only shadows reach."""
    assert counts(PAGE) == {
        "shadows_compared": 40,
        "shadows_not_compared": 3,
        "shadows_hanging": 51,
        "shadows_hung_ended": 4,
        "shadows_dropped": 9,
    }


def test_a_run_without_shadows_of_a_kind_is_no_measurement() -> None:
    """Answers would be equal because nothing was copied."""
    assert check({"shadows_compared": 1, "shadows_hanging": 1, "shadows_dropped": 1})["shadows_hanging"] == 1
    for kind in ("shadows_compared", "shadows_hanging", "shadows_dropped"):
        with pytest.raises(NoShadowsError, match=kind):
            check(counts(PAGE) | {kind: 0})


def test_a_figure_meets_its_goal_up_to_the_goal_itself() -> None:
    """Both sides of the boundary of each goal."""
    goals = {"p99_ratio_hung_shadow": 1.1, "answers_different": 0.0}
    assert [line.split()[-1] for line in table(goals)] == ["met"] * 2
    assert [line.split()[-1] for line in table({name: goal + 0.1 for name, goal in goals.items()})] == ["MISSED"] * 2
    assert {row.name: row.most for row in ROWS if row.most is not None} == goals
