"""DPO-06: files of lines grew to many gigabytes, without rotation or limits."""

import stat
from pathlib import Path

from router_ext.dpo.lines_file import LinesFile
from router_ext.dpo.paths import worker_path
from tests.fakes.clock import FakeClock
from tests.fakes.lines import files_of, numbered, numbers_in

DAY_S = 86_400
LINE = 20_000


def _append(file: LinesFile, first: int, count: int) -> None:
    lines = [numbered(number, LINE - 1) + b"\n" for number in range(first, first + count)]
    assert file.append(lines).dropped == 0


def test_the_size_of_all_files_is_bounded_and_the_oldest_go(tmp_path: Path) -> None:
    """4,000 lines of 20 KB into at most 4 full files of 1 MB and the one that is written: the last 250 at most stay."""
    path = tmp_path / "data" / "pairs.jsonl"
    file = LinesFile(path, 1_000_000, 4, FakeClock().wall)
    for first in range(0, 4000, 30):
        _append(file, first, 30)
        assert sum(found.stat().st_size for found in files_of(path)) <= 5_000_000
    numbers = numbers_in(*files_of(path))
    assert numbers == list(range(numbers[0], 4000 + 20))
    assert 200 < len(numbers) <= 250
    assert {stat.S_IMODE(found.stat().st_mode) for found in files_of(path)} == {0o600}


def test_a_clock_that_jumps_back_a_day_makes_no_name_twice_and_removes_no_new_file(tmp_path: Path) -> None:
    """While a reader has the old file open, which it reads to its end."""
    path = tmp_path / "pairs.jsonl"
    clock = FakeClock()
    file = LinesFile(path, 2 * LINE, 3, clock.wall)
    _append(file, 0, 2)
    with path.open("rb") as reader:
        for first in range(2, 20, 2):
            clock.advance(-DAY_S if first == 6 else 1)
            _append(file, first, 2)
        assert len(reader.read()) == 2 * LINE
    assert numbers_in(*files_of(path)) == list(range(12, 20))


def test_workers_do_not_share_names(tmp_path: Path) -> None:
    """Each counts and removes files of its own only, also at the same moment."""
    clock = FakeClock()
    paths = [worker_path(tmp_path / "pairs.jsonl", worker) for worker in (None, 0, 1)]
    for path in paths:
        _append(LinesFile(path, LINE, 1, clock.wall), 0, 3)
    assert [numbers_in(*files_of(path)) for path in paths] == [[1, 2]] * 3
