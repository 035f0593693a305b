"""Counts of open requests that the workers of one router share."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from router_ext.engine.tally import MAX_BACKENDS, Tally, backend_key
from router_ext.model.backend import Endpoint
from tests.fakes.domain import backend

A, B = backend_key(backend("a")), backend_key(backend("b"))


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """The file of three workers."""
    supervisor = Tally.create(tmp_path / "tally", 3)
    yield tmp_path / "tally"
    supervisor.close()


def _worker(path: Path, worker: int, *keys: bytes) -> Tally:
    """A worker with these backends."""
    tally = Tally.open(path, worker)
    assert tally.claim(keys or (A, B)) == []
    return tally


def test_a_worker_sees_what_all_others_have_in_flight(path: Path) -> None:
    """By backend, at once, and without its own."""
    one, two, three = (_worker(path, index) for index in range(3))
    one.add(A, 1)
    two.add(A, 1)
    two.add(A, 1)
    three.add(B, 4)
    assert [tally.others(A) for tally in (one, two, three)] == [2, 1, 3]
    assert [tally.others(B) for tally in (one, two, three)] == [4, 4, 0]
    two.add(A, -1)
    assert one.others(A) == 1


def test_a_backend_is_told_by_its_name_and_its_endpoint() -> None:
    """Other settings do not matter; neither half of the key alone does."""
    moved = backend("a", endpoint=Endpoint("http", "a", 8001))
    assert backend_key(backend("a", model="m-b", room=1)) == A
    assert len({A, B, backend_key(moved), backend_key(backend("b", endpoint=Endpoint("http", "a", 8000)))}) == 4
    assert len(A) == 16


def test_workers_may_have_other_backends_in_another_order(path: Path) -> None:
    """As for a moment while a new configuration is taken over."""
    one, two = _worker(path, 0, A), _worker(path, 1, B, A)
    two.add(A, 2)
    two.add(B, 3)
    assert (one.others(A), one.others(B)) == (2, 3)
    assert two.others(B) == 0


def test_a_backend_that_is_gone_counts_until_its_last_request_ends(path: Path) -> None:
    """Its place goes to another one only then."""
    one, two = _worker(path, 0), _worker(path, 1, A)
    two.add(A, 1)
    two.claim([B])
    two.add(B, 5)
    assert (one.others(A), one.others(B)) == (1, 5)
    two.add(A, -1)
    two.claim([B, b"c" * 16])
    two.add(b"c" * 16, 7)
    assert (one.others(A), one.others(B), one.others(b"c" * 16)) == (0, 5, 7)


def test_a_row_has_room_for_1024_backends(path: Path) -> None:
    """One more is counted alone, until a claim finds a place for it; its requests count from then on."""
    keys = [index.to_bytes(16, "big") for index in range(1, MAX_BACKENDS + 2)]
    one, two = Tally.open(path, 0), Tally.open(path, 1)
    assert MAX_BACKENDS == 1024
    assert two.claim(keys[:1024]) == []
    assert two.claim(keys) == keys[1024:]
    for key in keys:
        two.add(key, 1)
    assert (one.others(keys[1023]), one.others(keys[1024])) == (1, 0)
    two.add(keys[0], -1)
    assert two.claim(keys[1:]) == []
    assert (one.others(keys[0]), one.others(keys[1024])) == (0, 1)
    two.add(keys[1024], -1)
    assert one.others(keys[1024]) == 0


def test_a_worker_that_starts_anew_has_nothing_in_flight(path: Path) -> None:
    """Also where the one before it could not say good-bye."""
    one, two = _worker(path, 0), _worker(path, 1)
    two.add(A, 3)
    two.tell_ended(9.0)
    again = Tally.open(path, 1)
    assert (one.others(A), one.others_ended()) == (0, 0.0)
    again.claim([A])
    assert one.others(A) == 0
    again.add(A, 1)
    assert one.others(A) == 1


def test_the_supervisor_empties_the_row_of_a_worker_that_died(tmp_path: Path) -> None:
    """That one only. It sees what all workers have in flight, and counts nothing itself."""
    supervisor = Tally.create(tmp_path / "tally", 2)
    one, two = _worker(tmp_path / "tally", 0), _worker(tmp_path / "tally", 1)
    one.add(A, 2)
    two.add(A, 3)
    assert supervisor.others(A) == 5
    supervisor.clear(1)
    assert (supervisor.others(A), one.others(A), two.others(A)) == (2, 0, 2)
    with pytest.raises(ValueError, match="no worker 2 of 2"):
        supervisor.clear(2)
    with pytest.raises(RuntimeError, match="no row"):
        supervisor.claim([A])


def test_a_worker_that_closes_leaves_nothing_behind(path: Path) -> None:
    """The others need no supervisor for that."""
    one, two = _worker(path, 0), _worker(path, 1)
    two.add(A, 3)
    two.close()
    assert one.others(A) == 0


def test_the_others_ends_a_second_add_up(path: Path) -> None:
    """As each told them last, the own ones left out."""
    one, two, three = (_worker(path, index) for index in range(3))
    one.tell_ended(100.0)
    two.tell_ended(9.0)
    two.tell_ended(0.5)
    three.tell_ended(2.25)
    assert one.others_ended() == 2.75


def test_a_directory_that_is_half_written_is_not_read(path: Path) -> None:
    """At whatever word its change has arrived, from either end: what was known counts, and what is new not before the
    whole is there.
    """
    one, two = _worker(path, 0), _worker(path, 1, A)
    two.add(A, 3)
    before = path.read_bytes()
    two.claim([A, B])
    two.add(B, 5)
    after = path.read_bytes()
    changed = [at for at in range(0, len(before), 8) if before[at : at + 8] != after[at : at + 8]]
    assert len(changed) == 4  # the seal, two words of the key, the count
    for at in changed:
        for torn in (before[:at] + after[at:], after[:at] + before[at:]):
            _overwrite(path, before)
            assert (one.others(A), one.others(B)) == (3, 0)
            _overwrite(path, torn)
            assert one.others(A) == 3
            assert one.others(B) == (5 if torn == after else 0)
            _overwrite(path, after)
            assert (one.others(A), one.others(B)) == (3, 5)


def _overwrite(path: Path, content: bytes) -> None:
    with path.open("r+b") as file:
        file.write(content)


def test_only_its_user_may_open_the_file(path: Path) -> None:
    """And nobody makes a second one in its place."""
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        Tally.create(path, 3)


@pytest.mark.parametrize("worker", [-1, 3])
def test_a_worker_without_a_row_is_an_error(path: Path, worker: int) -> None:
    """The rows of three workers are 0, 1 and 2."""
    Tally.open(path, 0).close()
    Tally.open(path, 2).close()
    with pytest.raises(ValueError, match=f"row for worker {worker}"):
        Tally.open(path, worker)


@pytest.mark.parametrize("content", [b"", b"rx-tally", b"\0" * 24_704, b"rx-tally" + b"\0" * 24_697])
def test_a_file_of_another_kind_is_an_error(tmp_path: Path, content: bytes) -> None:
    """Empty, too short, of the right size without its mark, or a byte too long."""
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match=r"no tally|empty file"):
        Tally.open(tmp_path / "file", 0)


def test_a_file_of_one_worker_has_its_mark_and_one_row(tmp_path: Path) -> None:
    """A row takes 24,640 bytes, after 64 for the file."""
    (tmp_path / "file").write_bytes(b"rx-tally" + b"\0" * 24_696)
    Tally.open(tmp_path / "file", 0).close()


CHILD = """
import os, select, sys
from pathlib import Path
from router_ext.engine.tally import Tally

a, x, y = (bytes.fromhex(key) for key in sys.argv[2:])
tally = Tally.open(Path(sys.argv[1]), 1)
tally.claim([a])
tally.add(a, 7)
print("counted", flush=True)
os.read(0, 1)
while not select.select([sys.stdin], [], [], 0)[0]:
    for key, count in ((x, 100), (y, 1000)):
        tally.claim([a, key])
        tally.add(key, count)
        for _ in range(1000):
            tally.others(a)
        tally.add(key, -count)
os._exit(1)
"""


def test_another_process_is_seen_while_its_backends_change_places(path: Path) -> None:
    """``x`` and ``y`` take the same place in turn, and no count is ever seen as another's. What a process leaves when
    it dies counts until its row is emptied.
    """
    x, y = b"x" * 16, b"y" * 16
    one, deadline = _worker(path, 0), time.monotonic() + 20
    seen: dict[bytes, set[int]] = {A: set(), x: set(), y: set()}
    everything = {A: {7}, x: {0, 100}, y: {0, 1000}}
    argv = [sys.executable, "-c", CHILD, str(path), A.hex(), x.hex(), y.hex()]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == b"counted\n"
        assert one.others(A) == 7
        child.stdin.write(b"!")
        child.stdin.flush()
        while seen != everything and time.monotonic() < deadline:
            for key in (A, x, y) * 1000:
                seen[key].add(one.others(key))
    assert seen == everything
    assert child.returncode == 1
    assert one.others(A) == 7
    one.clear(1)
    assert one.others(A) == 0
