"""The ledger in a file: what it adds up, and what it survives. Real files, real processes."""

import json
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import date, timedelta
from pathlib import Path

import pytest

from router_ext.costs.days import Dates
from router_ext.ledger.opening import KEPT_DAYS
from router_ext.ledger.sqlite import REPLACED, SqliteLedger
from router_ext.model.ledger import MAX_COUNT, Key, Part, Row
from router_ext.model.outcome import Usage
from router_ext.model.shared import SpendTold
from router_ext.ports import LedgerError
from tests.fakes.ledger import TODAY, USAGE, key, row

ROOT = Path(__file__).parents[2]
YESTERDAY = TODAY - timedelta(days=1)
EVER = Dates(date.min, date.max)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where there is no ledger yet, nor its folder."""
    return tmp_path / "data" / "ledger.sqlite"


@contextmanager
def opened(path: Path, router: str = "me", today: date = TODAY) -> Iterator[SqliteLedger]:
    """A ledger that is closed at the end."""
    ledger = SqliteLedger(path, router=router, today=today)
    try:
        yield ledger
    finally:
        ledger.close()


def book(ledger: SqliteLedger, *services: str, day: date = TODAY, micro_usd: int = 10) -> None:
    """A call for each."""
    for service in services:
        ledger.book(key(service, day=day), USAGE, micro_usd, estimated=False)


def rows_of(path: Path) -> list[Row]:
    """What a process that opens the file finds in it."""
    with opened(path, "reader") as ledger:
        return ledger.rows(EVER)


# Sums


def test_what_is_booked_counts_at_once_and_after_a_flush_just_the_same(path: Path) -> None:
    """And when the file is opened again."""
    expected = [row(key("blog"), 1, 10), row(key("shop"), 2, 20)]
    with opened(path) as ledger:
        book(ledger, "shop", "blog", "shop")
        assert ledger.rows(EVER) == expected
        assert ledger.flush() == ""
        assert ledger.rows(EVER) == expected
    assert rows_of(path) == expected


def test_flushes_add_to_what_is_there(path: Path) -> None:
    """Each row, whichever process wrote it first; what is not flushed yet is added to what is."""
    for calls in (2, 4):
        with opened(path) as ledger:
            book(ledger, "shop")
            ledger.flush()
            book(ledger, "shop")
            assert ledger.rows(EVER) == [row(key("shop"), calls, 10 * calls)]


@pytest.mark.parametrize(
    "other",
    [key("blog"), key(backend="b"), key(model="m-b"), key(kind="fallback"), key(day=YESTERDAY)],
)
def test_every_part_of_a_key_makes_a_row_of_its_own(path: Path, other: Key) -> None:
    """In the order of the keys."""
    with opened(path) as ledger:
        for each in (key(), other):
            ledger.book(each, USAGE, 10, estimated=False)
    assert [found.key for found in rows_of(path)] == sorted([key(), other])


def test_estimated_calls_are_counted_among_all(path: Path) -> None:
    """The tokens too; an engine that says nothing of its cache had none of the prompt in it."""
    with opened(path) as ledger:
        ledger.book(key(), Usage(8, 2), 5, estimated=True)
        ledger.book(key(), USAGE, 10, estimated=False)
    assert rows_of(path) == [Row(key(), 2, 1, 108, 40, 9, 15)]


def test_names_are_kept_letter_by_letter(path: Path) -> None:
    """Quotes, zeros and other alphabets."""
    names = ["it's", 'a"b', "größe", "数", "a\0b", "", " "]
    with opened(path) as ledger:
        book(ledger, *names)
    assert [found.key.service for found in rows_of(path)] == sorted(names)


def test_sums_end_at_the_highest_number_on_file_too(path: Path) -> None:
    """Beyond 64 bits SQLite would go on with a float."""
    for _ in range(2):
        with opened(path) as ledger:
            ledger.book(key(), Usage(10**30, 10**30, 10**30), 10**30, estimated=False)
    most = MAX_COUNT, MAX_COUNT, MAX_COUNT, MAX_COUNT
    assert rows_of(path) == [Row(key(), 2, 0, *most)]


def test_rows_are_those_of_the_days_asked_for(path: Path) -> None:
    """Both ends included, flushed or not."""
    days = [TODAY - timedelta(days=back) for back in (3, 2, 1, 0)]
    with opened(path) as ledger:
        for flush in (True, False):
            for day in days:
                book(ledger, "shop", day=day)
            if flush:
                ledger.flush()
        found = ledger.rows(Dates(days[1], days[2]))
    assert [(each.key.day, each.calls) for each in found] == [(days[1], 2), (days[2], 2)]


def test_spending_of_a_day_is_by_service(path: Path) -> None:
    """Over backends, models and kinds."""
    with opened(path) as ledger:
        book(ledger, "shop", "blog", micro_usd=7)
        ledger.flush()
        ledger.book(key("shop", "b", "m-b", "fallback"), USAGE, 100, estimated=False)
        book(ledger, "shop", day=YESTERDAY, micro_usd=1000)
        assert ledger.spent(TODAY) == {"blog": 7, "shop": 107}
        assert ledger.spent(TODAY + timedelta(days=1)) == {}


def test_what_former_processes_spent_is_told_under_their_ids(path: Path) -> None:
    """Other routers may still tell of them by these ids, so that nothing may count under a new one."""
    for router, services in (("one", ("shop", "blog")), ("two", ("shop", "shop"))):
        with opened(path, router) as ledger:
            for service in services:
                book(ledger, service)
                ledger.flush()
    with opened(path, "three") as ledger:
        book(ledger, "shop")
        ledger.flush()
        assert ledger.told(TODAY) == [
            SpendTold("one", TODAY, (("blog", 10), ("shop", 10))),
            SpendTold("two", TODAY, (("shop", 20),)),
        ]
        assert ledger.told(YESTERDAY) == []


@pytest.mark.parametrize(("age_days", "kept"), [(KEPT_DAYS, True), (KEPT_DAYS + 1, False)])
def test_rows_older_than_400_days_are_gone_at_the_next_opening(path: Path, age_days: int, kept: bool) -> None:
    """A year, and the month that it is compared with."""
    assert KEPT_DAYS == 400
    old = TODAY - timedelta(days=age_days)
    with opened(path) as ledger:
        book(ledger, "shop", day=old)
        book(ledger, "shop")
    assert [found.key.day for found in rows_of(path)] == ([old, TODAY] if kept else [TODAY])


def test_parts_are_those_of_each_process_that_wrote_the_file(path: Path) -> None:
    """What is booked is added to what is flushed; rows are the sums of them."""
    with opened(path, "one") as ledger:
        book(ledger, "shop")
    with opened(path, "two", TODAY + timedelta(days=2)) as ledger:
        book(ledger, "shop", "blog")
        ledger.flush()
        book(ledger, "shop")
        book(ledger, "shop", day=YESTERDAY)
        parts = sorted(ledger.parts(Dates(TODAY, TODAY)), key=lambda part: (part.router, part.row.key))
        assert parts == [
            Part("one", row(key("shop"), 1, 10)),
            Part("two", row(key("blog"), 1, 10)),
            Part("two", row(key("shop"), 2, 20)),
        ]
        assert ledger.rows(Dates(TODAY, TODAY)) == [row(key("blog"), 1, 10), row(key("shop"), 3, 30)]
        assert ledger.days() == {TODAY: 3}
        ledger.flush()
        assert ledger.days() == {TODAY: 3, YESTERDAY: 1}


# The file


def test_the_folder_and_its_files_are_the_router_s_own(path: Path) -> None:
    """Whatever the file was before."""
    for _ in range(2):
        with opened(path) as ledger:
            book(ledger, "shop")
            ledger.flush()
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
            names = ("ledger.sqlite", "ledger.sqlite-shm", "ledger.sqlite-wal", "ledger.sqlite.lock")
            assert modes == dict.fromkeys(names, 0o600)
        path.chmod(0o644)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_others_may_read_while_the_router_writes(path: Path) -> None:
    """An operator with ``sqlite3``: neither waits for the other."""
    with opened(path) as ledger:
        book(ledger, "shop")
        ledger.flush()
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN")
            assert other.execute("SELECT service, micro_usd FROM calls").fetchall() == [("shop", 10)]
            book(ledger, "shop")
            assert ledger.flush() == ""
            other.execute("COMMIT")
            assert other.execute("SELECT micro_usd FROM calls").fetchall() == [(20,)]


def test_a_checkpoint_of_another_thread_moves_rows_into_the_file(path: Path) -> None:
    """The file alone then has them, and the WAL begins anew."""
    wal = path.with_name("ledger.sqlite-wal")
    with opened(path) as ledger:
        for _ in range(200):
            book(ledger, "shop")
            ledger.flush()
        size = wal.stat().st_size
        thread = threading.Thread(target=ledger.checkpoint)
        thread.start()
        thread.join(10)
        book(ledger, "shop")
        assert ledger.flush() == ""
        assert wal.stat().st_size == size
        copy = path.with_name("copy.sqlite")
        copy.write_bytes(path.read_bytes())
        with closing(sqlite3.connect(copy)) as other:
            assert other.execute("SELECT calls FROM calls").fetchall() == [(200,)]
    assert rows_of(path) == [row(key("shop"), 201, 2010)]


def test_a_closed_ledger_may_be_opened_by_the_next(path: Path) -> None:
    """Closing flushes, and closing twice is as once."""
    ledger = SqliteLedger(path, router="me", today=TODAY)
    book(ledger, "shop")
    assert (ledger.close(), ledger.close()) == ("", "")
    assert rows_of(path) == [row(key("shop"), 1, 10)]


# What may not be opened


def _text(path: Path) -> None:
    path.write_text("day,service,cost\n" * 100)


def _byte(path: Path) -> None:
    path.write_bytes(b"\0")


def _other_application(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE calls (day)")
        other.commit()


def _newer(path: Path) -> None:
    _ledger(path)
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 3")


def _cut(path: Path) -> None:
    _ledger(path)
    path.write_bytes(path.read_bytes()[:4096])


def _scribbled(path: Path) -> None:
    _ledger(path)
    content = bytearray(path.read_bytes())
    content[4096:4196] = b"\xa5" * 100
    path.write_bytes(content)


def _ledger(path: Path) -> None:
    with opened(path) as ledger:
        book(ledger, "shop")


def _folder(path: Path) -> None:
    path.mkdir()


def _link(path: Path) -> None:
    path.symlink_to("/dev/null")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (_text, "is no ledger of router_ext: move it away, or set another server.data_dir"),
        (_byte, "is no ledger of router_ext"),
        (_other_application, "is no ledger of router_ext"),
        (_newer, "is of version 3, and this router_ext knows 2 only"),
        (_cut, "malformed"),
        (_scribbled, "is damaged"),
        (_folder, "Is a directory"),
        (_link, "Too many levels of symbolic links"),
    ],
)
def test_what_is_no_whole_ledger_is_refused_and_left_as_it_is(
    path: Path, make: Callable[[Path], None], problem: str
) -> None:
    """The message names the file; the lock is free again."""
    path.parent.mkdir()
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    for _ in range(2):
        with pytest.raises(LedgerError) as error:
            SqliteLedger(path, router="me", today=TODAY)
        assert str(path) in str(error.value)
        assert problem in str(error.value)
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_newer_version_is_known_from_the_wal_alone(path: Path) -> None:
    """A newer router changed the file and died before a checkpoint: the file's first bytes are the old ones."""
    with opened(path) as ledger, closing(sqlite3.connect(path)) as other:
        book(ledger, "shop")
        ledger.flush()
        other.execute("PRAGMA user_version = 3")
        crashed = path.parent.parent / "crashed"
        shutil.copytree(path.parent, crashed)
    with pytest.raises(LedgerError, match="is of version 3"):
        SqliteLedger(crashed / path.name, router="me", today=TODAY)


def test_an_empty_file_becomes_a_ledger(path: Path) -> None:
    """As a crash within the first moments leaves it."""
    path.parent.mkdir()
    path.touch()
    _ledger(path)
    assert rows_of(path) == [row(key("shop"), 1, 10)]


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    """A file is in its place."""
    (tmp_path / "data").touch()
    with pytest.raises(LedgerError, match="cannot be opened"):
        SqliteLedger(tmp_path / "data" / "ledger.sqlite", router="me", today=TODAY)


# What fails while it runs


def test_a_locked_file_keeps_everything_booked_until_the_lock_is_gone(path: Path) -> None:
    """Somebody mends it by hand: nobody waits for that, and nothing is lost or counted twice."""
    with opened(path) as ledger, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        for calls in (1, 2):
            book(ledger, "shop")
            assert ledger.flush() == "SQLITE_BUSY"
            assert ledger.rows(EVER) == [row(key("shop"), calls, 10 * calls)]
        assert time.monotonic() - began < 1.0
        other.execute("COMMIT")
        assert ledger.flush() == ""
        assert ledger.flush() == ""
    assert rows_of(path) == [row(key("shop"), 2, 20)]


def test_a_flush_that_fails_halfway_has_written_nothing(path: Path) -> None:
    """The second of two rows is refused: the first is taken back, and comes with the next flush."""
    refuse = "CREATE TRIGGER refuse BEFORE INSERT ON calls WHEN new.service = 'shop' BEGIN SELECT RAISE(ABORT, ''); END"
    with opened(path) as ledger, closing(sqlite3.connect(path)) as other:
        other.execute(refuse)
        book(ledger, "blog", "shop")
        for _ in range(2):
            assert ledger.flush() == "SQLITE_CONSTRAINT_TRIGGER"
            assert other.execute("SELECT count(*) FROM calls").fetchone() == (0,)
        other.execute("DROP TRIGGER refuse")
        assert ledger.flush() == ""
    assert rows_of(path) == [row(key("blog"), 1, 10), row(key("shop"), 1, 10)]


@pytest.mark.parametrize("replace", [True, False])
def test_a_file_that_was_taken_away_is_an_error_and_not_a_loss(path: Path, replace: bool) -> None:
    """Nobody would find what goes into a file without a name. Back in its place it gets everything."""
    aside = path.with_name("aside")
    with opened(path) as ledger:
        book(ledger, "shop")
        ledger.flush()
        path.rename(aside)
        if replace:
            path.write_bytes(b"another")
        book(ledger, "shop")
        assert ledger.flush() == REPLACED
        assert ledger.spent(TODAY) == {"shop": 20}
        aside.replace(path)
        assert ledger.flush() == ""
    assert rows_of(path) == [row(key("shop"), 2, 20)]


# Other processes


def _child(name: str, path: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.contract.ledger_children", name, str(path)]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("flushes", [1, 2, 50, 300])
def test_a_killed_process_leaves_every_flush_and_none_in_part(path: Path, flushes: int) -> None:
    """SIGKILL at any moment: what was said to be flushed is there, and three calls always come together."""
    with _child("killed", path) as child:
        assert child.stdout is not None
        told = 0
        while told < 3 * flushes:
            told = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().split("\n")
        told = max([told, *(int(line) for line in rest[:-1])])
    blog, shop = rows_of(path)
    assert shop.calls == 2 * blog.calls
    assert told <= blog.calls + shop.calls <= told + 3
    assert (blog, shop) == (
        row(key("blog"), blog.calls, 10 * blog.calls),
        row(key("shop"), shop.calls, 10 * shop.calls),
    )


def test_what_was_not_flushed_dies_with_the_process(path: Path) -> None:
    """So that the file tells a flush from a booking."""
    with _child("dies", path) as child:
        child.communicate(timeout=30)
    assert child.returncode == -signal.SIGKILL
    assert rows_of(path) == [row(key(), 1, 10)]


def test_a_second_process_is_refused_until_the_first_is_dead(path: Path) -> None:
    """Also by its own kind within one process; a lock does not outlive its holder."""
    with _child("holds", path) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "open\n"
        with pytest.raises(LedgerError, match="another process writes it"):
            SqliteLedger(path, router="me", today=TODAY)
        child.communicate("", timeout=30)
    with opened(path) as ledger:
        assert ledger.spent(TODAY) == {"shop": 10}
        with pytest.raises(LedgerError, match="another process writes it"):
            SqliteLedger(path, router="me", today=TODAY)


def test_a_full_disk_keeps_everything_booked_until_there_is_room(path: Path) -> None:
    """However little of it fits; each error is the same until then, and nothing counts twice."""
    with _child("full", path) as child:
        output, _ = child.communicate(timeout=30)
    full = [json.loads(line) for line in output.splitlines()]
    assert [calls for _, _, calls in full] == [2, 3, 4, 4]
    assert [error == again for error, again, _ in full] == [True] * 4
    assert [bool(error) for error, _, _ in full] == [True, True, True, False]
    assert rows_of(path) == [row(key("first"), 1, 10), row(key("full"), 3, 30)]
