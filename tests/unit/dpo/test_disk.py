"""What a killed process and a full disk leave. Child processes, real files."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from router_ext.dpo.lines_file import LinesFile
from tests.fakes.clock import FakeClock
from tests.fakes.lines import files_of, numbered, numbers_in

ROOT = Path(__file__).parents[3]


def _child(name: str, path: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.unit.dpo.children", name, str(path)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def _told(name: str, path: Path) -> list[object]:
    with _child(name, path) as child:
        output, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    return [json.loads(line) for line in output.splitlines()]


@pytest.mark.parametrize("lines_seen", [1, 3, 10, 30])
def test_a_killed_writer_leaves_whole_lines_after_a_restart(tmp_path: Path, lines_seen: int) -> None:
    """SIGKILL while lines of up to 300 KB are written: none is torn or there twice, those that were told are there, and
    the next process goes on behind them.
    """
    path = tmp_path / "pairs.jsonl"
    with _child("killed", path) as child:
        assert child.stdout is not None
        while int(child.stdout.readline()) < lines_seen:
            pass
        child.send_signal(signal.SIGKILL)
    file = LinesFile(path, 1_000_000, 1000, FakeClock().wall)
    assert file.append([numbered(10**9) + b"\n"]).written == 1
    numbers = numbers_in(*files_of(path))
    assert len(numbers) > lines_seen
    assert numbers == sorted(set(numbers))


def test_a_full_disk_costs_lines_and_leaves_whole_ones(tmp_path: Path) -> None:
    """The fourth line is cut back, as if it had not been begun; said once, each one counted. With room again lines are
    written again.
    """
    path = tmp_path / "pairs.jsonl"
    failing = "pairs.jsonl failing: disk ENOSPC"
    assert _told("full", path) == [
        [3, {"disk": 3}, [failing]],
        [4, {"disk": 3}, [failing, "pairs.jsonl recovered: disk"]],
    ]
    assert numbers_in(path) == [0, 1, 2, 6]


def test_of_a_batch_the_lines_that_fit_are_kept(tmp_path: Path) -> None:
    """One call wrote three and a half: three count as written, three as dropped."""
    path = tmp_path / "pairs.jsonl"
    assert _told("full-batch", path) == [[3, {"disk": 3}, ["pairs.jsonl failing: disk ENOSPC"]]]
    assert numbers_in(path) == [0, 1, 2]
