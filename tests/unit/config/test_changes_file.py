"""The file of the changes: whole, private, and never written over what another process wrote."""

import os
import stat
import threading
from pathlib import Path

import pytest

from router_ext.config.changes import NO_CHANGES
from router_ext.config.changes_file import MAX_BYTES, ChangesFile
from router_ext.config.problem import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> ChangesFile:
    """In a folder that does not exist yet."""
    return ChangesFile(tmp_path / "data")


def test_a_missing_file_holds_no_changes(file: ChangesFile) -> None:
    """As before the first change, and after the last one was taken back."""
    assert file.decoded(file.content()) == NO_CHANGES


def test_changes_are_kept_whole_and_private(file: ChangesFile) -> None:
    """Only the router's user reads them; no other file is left behind but the lock."""
    changes = NO_CHANGES.with_drained("a")
    assert file.replace(b"", file.encoded(changes))
    assert file.decoded(file.content()) == changes
    assert stat.S_IMODE(os.stat(file.path).st_mode) == 0o600
    assert sorted(item.name for item in file.path.parent.iterdir()) == ["changes.json", "changes.json.lock"]


def test_no_changes_any_more_is_no_file(file: ChangesFile) -> None:
    """Nothing is left that a start would have to read."""
    content = file.encoded(NO_CHANGES.with_drained("a"))
    file.replace(b"", content)
    assert file.replace(content, file.encoded(NO_CHANGES))
    assert not file.path.exists()


def test_what_another_process_wrote_is_not_written_over(file: ChangesFile) -> None:
    """Whoever comes second is told, and looks again."""
    one, two = (file.encoded(NO_CHANGES.with_drained(name)) for name in "ab")
    assert file.replace(b"", one)
    assert not file.replace(b"", two)
    assert file.content() == one


def test_of_many_at_once_one_wins(file: ChangesFile) -> None:
    """The look and the write are one step for all processes."""
    won: list[int] = []
    start = threading.Barrier(8)

    def write(number: int) -> None:
        start.wait()
        if file.replace(b"", b"%d" % number):
            won.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [file.content()] == [b"%d" % number for number in won]


def test_a_write_that_fails_leaves_the_old_file(file: ChangesFile) -> None:
    """A folder in the way of the rename: the file of before stays, and no temporary one."""
    file.path.mkdir(parents=True)
    with pytest.raises(ConfigError, match="cannot be read"):
        file.replace(b"", b"new")
    assert sorted(item.name for item in file.path.parent.iterdir()) == ["changes.json", "changes.json.lock"]


def test_changes_have_a_largest_size(file: ChangesFile) -> None:
    """Neither read nor written beyond 4 MiB."""
    with pytest.raises(ConfigError, match="larger than 4 MiB"):
        file.encoded(NO_CHANGES.with_backend("a", {"model_name": "m" * MAX_BYTES}))
    file.path.parent.mkdir()
    file.path.write_bytes(b" " * (MAX_BYTES + 1))
    with pytest.raises(ConfigError, match="larger than 4 MiB"):
        file.content()


def test_set_aside_replaces_what_was_set_aside_before(file: ChangesFile) -> None:
    """The last discarded changes can be read; nothing is said where there are none."""
    assert file.set_aside() is None
    for content in (b"one", b"two"):
        file.replace(b"", content)
        aside = file.set_aside()
    assert aside is not None
    assert (aside.name, aside.read_bytes(), file.content()) == ("changes.json.discarded", b"two", b"")
