"""Names of files."""

from pathlib import Path

import pytest

from router_ext.dpo.paths import rotated_at_us, rotated_path, worker_path

PATH = Path("/data/name.jsonl")
AT_US = 1_700_000_000_000_001


@pytest.mark.parametrize(("worker", "name"), [(None, "name.jsonl"), (0, "name.w0.jsonl"), (2, "name.w2.jsonl")])
def test_each_of_several_workers_has_a_file_of_its_own(worker: int | None, name: str) -> None:
    """One alone has the configured one."""
    assert worker_path(PATH, worker) == Path("/data") / name


def test_a_full_file_is_named_by_utc_time_in_microseconds() -> None:
    """And the name gives the time back."""
    assert rotated_path(PATH, AT_US) == Path("/data/name-20231114T221320.000001Z.jsonl")
    assert rotated_at_us(PATH, "name-20231114T221320.000001Z.jsonl") == AT_US


def test_names_sort_by_time() -> None:
    """So the oldest file is the first one."""
    times = [AT_US, AT_US + 1, AT_US + 999_999, AT_US + 1_000_000, AT_US + 10**13]
    names = [rotated_path(PATH, at_us).name for at_us in times]
    assert names == sorted(names)


@pytest.mark.parametrize(
    "name",
    [
        "name.jsonl",
        "name-20231114T221320.000001Z.json",
        "name-20231114T221320Z.jsonl",
        "name-20231314T221320.000001Z.jsonl",
        "name-20231114T221320.000001Z.old.jsonl",
        "name.w2-20231114T221320.000001Z.jsonl",
        "other-20231114T221320.000001Z.jsonl",
        "name-mine.jsonl",
    ],
)
def test_other_files_of_the_folder_are_none_of_its_own(name: str) -> None:
    """Nobody else's file is ever removed."""
    assert rotated_at_us(PATH, name) is None
