"""From figures to a table."""

from benchmarks.sessions.report import ROWS, broken, table


def test_a_figure_meets_its_goal_up_to_the_goal_itself() -> None:
    """Both sides of the boundary."""
    lines = table({"upload_bytes_max": 999, "hydrated_p50_ratio": 1.0, "lost_turns": 0})
    assert [line.split()[-1] for line in lines] == ["met", "met", "met"]
    lines = table({"upload_bytes_max": 1000, "hydrated_p50_ratio": 1.001, "lost_turns": 1})
    assert [line.split()[-1] for line in lines] == ["MISSED", "MISSED", "MISSED"]


def test_only_a_figure_that_should_be_0_breaks_the_run() -> None:
    """A slow machine breaks nothing; duplicates are told, not judged."""
    assert broken({"lost_turns": 1, "hydrated_p50_ratio": 1.5, "duplicate_turns": 7}) == ["lost_turns"]
    assert broken({"lost_turns": 0}) == []


def test_the_table_says_value_goal_and_verdict() -> None:
    """A line for each figure that there is."""
    lines = table({"lost_turns": 2, "duplicate_turns": 3, "store_overhead_ratio": 1.1})
    assert [line.split("  ")[0] for line in lines] == [
        "memory store: resident bytes for a byte of messages",
        "of these not in their session",
        "stored twice, after a try that was not acknowledged",
    ]
    assert [line.split()[-1] for line in lines] == ["met", "MISSED", "3"]


def test_every_figure_has_one_row() -> None:
    """No name stands twice."""
    assert len({row.name for row in ROWS}) == len(ROWS)
