"""The file on a disk: rotation, bounds, and what a crash left."""

import os
import stat
from pathlib import Path

import pytest

from router_ext.dpo.lines_file import Appended, LinesFile
from tests.fakes.clock import FakeClock
from tests.fakes.lines import files_of, numbered, numbers_in


def _file(path: Path, max_bytes: int = 1000, max_files: int = 10, clock: FakeClock | None = None) -> LinesFile:
    return LinesFile(path, max_bytes, max_files, (clock or FakeClock()).wall)


def _line(number: int, size: int = 0) -> bytes:
    return numbered(number, size - 1) + b"\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """In a folder that is not there yet."""
    return tmp_path / "data" / "pairs.jsonl"


def test_lines_are_appended_in_order(path: Path) -> None:
    """To what is there already."""
    assert _file(path).append([_line(1), _line(2)]) == Appended(2, 0, "", 0)
    assert _file(path).append([_line(3)]) == Appended(1, 0, "", 0)
    assert numbers_in(path) == [1, 2, 3]


def test_a_file_is_filled_to_its_last_byte(path: Path) -> None:
    """300 bytes take three lines of 100; the fourth goes to the next file."""
    file = _file(path, max_bytes=300)
    file.append([_line(number, 100) for number in range(3)])
    assert [found.stat().st_size for found in files_of(path)] == [300]
    file.append([_line(3, 100)])
    assert [found.stat().st_size for found in files_of(path)] == [300, 100]


def test_a_line_that_is_one_byte_too_long_for_the_rest_begins_a_new_file(path: Path) -> None:
    """No line is split, and no file is larger than allowed."""
    _file(path, max_bytes=300).append([_line(0, 100), _line(1, 201), _line(2, 99)])
    assert [found.stat().st_size for found in files_of(path)] == [100, 300]
    assert numbers_in(*files_of(path)) == [0, 1, 2]


def test_one_batch_may_fill_many_files(path: Path) -> None:
    """Their names sort in the order of their lines, although the clock stands still."""
    _file(path, max_bytes=250, max_files=100).append([_line(number, 100) for number in range(21)])
    assert len(files_of(path)) == 11
    assert numbers_in(*files_of(path)) == list(range(21))


def test_only_so_many_full_files_are_kept(path: Path) -> None:
    """The oldest go; other files of the folder stay."""
    path.parent.mkdir()
    other = path.with_name("pairs-mine.jsonl")
    other.write_text("{}\n")
    _file(path, max_bytes=100, max_files=2).append([_line(number, 100) for number in range(6)])
    assert numbers_in(*(file for file in files_of(path) if file != other)) == [3, 4, 5]
    assert other.exists()


def test_a_lower_limit_removes_what_an_earlier_one_kept(path: Path) -> None:
    """At the next rotation."""
    _file(path, max_bytes=100, max_files=9).append([_line(number, 100) for number in range(6)])
    _file(path, max_bytes=100, max_files=1).append([_line(6, 100)])
    assert numbers_in(*files_of(path)) == [5, 6]


def test_a_clock_that_goes_back_changes_no_order(path: Path) -> None:
    """A day back: the new file is named as the newest, and the oldest is the one that goes."""
    clock = FakeClock()
    file = _file(path, max_bytes=100, max_files=2, clock=clock)
    for number in range(5):
        file.append([_line(number, 100)])
        clock.advance(-86_400)
    assert numbers_in(*files_of(path)) == [2, 3, 4]


def test_a_name_that_is_taken_is_never_overwritten(path: Path) -> None:
    """A folder of that name is as good as a file of somebody else."""
    clock = FakeClock()
    path.parent.mkdir()
    taken = path.with_name("pairs-20231114T221320.000000Z.jsonl")
    taken.mkdir()
    file = _file(path, max_bytes=100, clock=clock)
    assert file.append([_line(0, 100), _line(1, 100)]).error == ""
    assert [found.name for found in files_of(path)] == [
        taken.name,
        "pairs-20231114T221320.000001Z.jsonl",
        "pairs.jsonl",
    ]


def test_full_files_that_cannot_be_removed_stop_the_writing(path: Path) -> None:
    """Otherwise the disk would fill without a bound. Once they are gone it goes on."""
    path.parent.mkdir()
    stuck = path.with_name("pairs-20231114T221320.000000Z.jsonl")
    stuck.mkdir()
    file = _file(path, max_bytes=100, max_files=1)
    assert file.append([_line(0, 100), _line(1, 100)]).dropped == 1
    assert file.append([_line(2, 100)]).dropped == 1
    stuck.rmdir()
    assert file.append([_line(3, 100)]) == Appended(1, 0, "", 0)
    assert numbers_in(*files_of(path)) == [0, 3]


def test_a_reader_keeps_the_file_that_it_has_open(path: Path) -> None:
    """Rotation renames: the reader reads on to the end of what it opened."""
    file = _file(path, max_bytes=100)
    file.append([_line(0, 100)])
    with path.open("rb") as reader:
        file.append([_line(1, 100)])
        assert reader.read() == _line(0, 100)
        assert reader.read() == b""


def test_files_are_for_their_owner_only(path: Path) -> None:
    """0600 in a folder 0700, also a file that was wider before."""
    _file(path, max_bytes=100).append([_line(0, 100), _line(1, 100)])
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [stat.S_IMODE(file.stat().st_mode) for file in files_of(path)] == [0o600, 0o600]
    path.chmod(0o644)
    _file(path).append([])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("left", "torn", "kept"),
    [
        (b"", 0, b""),
        (b'{"n":1}\n', 0, b'{"n":1}\n'),
        (b'{"n":1}\n{"n":2', 6, b'{"n":1}\n'),
        (b'{"n":1}\n' + b"x" * 200_000, 200_000, b'{"n":1}\n'),
        (b'{"n":1}\n' + b"x" * 65_536, 65_536, b'{"n":1}\n'),
        (b"x" * 65_535 + b"\n" + b"y" * 65_536, 65_536, b"x" * 65_535 + b"\n"),
        (b"x" * 70_000, 70_000, b""),
        (b'{"n":1}\n\0\0\0\0', 4, b'{"n":1}\n'),
    ],
)
def test_a_torn_last_line_is_cut_off_when_the_file_is_opened(path: Path, left: bytes, torn: int, kept: bytes) -> None:
    """Back to its last newline, wherever that is."""
    path.parent.mkdir()
    path.write_bytes(left)
    assert _file(path, max_bytes=10**9).append([]) == Appended(0, 0, "", torn)
    assert path.read_bytes() == kept


def test_a_torn_line_is_found_from_the_end(path: Path) -> None:
    """A file of 100 GB, most of it a hole, takes no time."""
    path.parent.mkdir()
    with path.open("wb") as hole:
        hole.truncate(100 << 30)
        hole.seek(0, os.SEEK_END)
        hole.write(b"\ntorn")
    assert _file(path, max_bytes=1 << 40).append([]).torn_bytes == 4
    assert path.stat().st_size == (100 << 30) + 1


def test_a_file_that_was_removed_or_replaced_is_opened_anew(path: Path) -> None:
    """Otherwise lines would go to a file that nobody finds."""
    file = _file(path)
    file.append([_line(0)])
    path.unlink()
    file.append([_line(1)])
    assert numbers_in(path) == [1]
    path.rename(path.with_name("moved"))
    path.write_bytes(_line(2))
    file.append([_line(3)])
    assert numbers_in(path) == [2, 3]


def test_a_file_that_was_emptied_by_somebody_is_written_from_its_start(path: Path) -> None:
    """No hole is left in it."""
    file = _file(path)
    file.append([_line(0)])
    path.write_bytes(b"")
    file.append([_line(1)])
    assert path.read_bytes() == _line(1)


@pytest.mark.parametrize(("name", "cause"), [("missing/../pairs.jsonl", "EISDIR"), ("link.jsonl", "ELOOP")])
def test_what_cannot_be_opened_is_said_and_tried_again(tmp_path: Path, name: str, cause: str) -> None:
    """A folder of that name; a symbolic link, which could lead anywhere."""
    target = tmp_path / "pairs.jsonl"
    (tmp_path / "missing").mkdir()
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "elsewhere")
    target.mkdir()
    file = _file(tmp_path / name)
    assert file.append([_line(0), _line(1)]) == Appended(0, 2, cause, 0)
    target.rmdir()
    (tmp_path / "link.jsonl").unlink()
    assert file.append([_line(2)]) == Appended(1, 0, "", 0)


def test_a_closed_file_is_opened_by_the_next_lines(path: Path) -> None:
    """Closing twice does nothing."""
    file = _file(path)
    file.append([_line(0)])
    file.close()
    file.close()
    file.append([_line(1)])
    assert numbers_in(path) == [0, 1]
