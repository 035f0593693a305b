"""Opens the file of a ledger: locked, private, made if it is missing, and refused if it is anything else.

What a file is, its first bytes say: SQLite does not touch one that is no ledger.
"""

import contextlib
import fcntl
import os
import sqlite3
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from router_ext.ledger.paths import lock_path
from router_ext.model.ledger import MAX_COUNT
from router_ext.ports import LedgerError

KEPT_DAYS: Final = 400
"""How old a row gets: a year, and the month that it is compared with."""

SCHEMA_VERSION: Final = 2
"""Raised by every change that an older router could not read or write."""

APPLICATION_ID: Final = 0x6B726C67
"""``krlg``: by it a ledger is told from other SQLite files."""

_SQLITE: Final = b"SQLite format 3\x00"
_HEADER_BYTES: Final = 100
_VERSION_AT: Final = 60
_APPLICATION_AT: Final = 68
"""Big-endian 32-bit numbers of the header, https://www.sqlite.org/fileformat.html#the_database_header."""

_FILE_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o700
_OPEN_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW

_OPENING_PATIENCE_S: Final = 2.0
"""How long opening waits for somebody who reads or mends the file. Nobody waits afterwards: it is the event loop."""

_CHECKPOINT_PAGES: Final = 10_000
"""A commit that leaves more than these 40 MB in the WAL checkpoints itself. ``SqliteLedger.checkpoint`` comes first."""

_MADE: Final = f"""
BEGIN;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
CREATE TABLE calls (
  day TEXT NOT NULL, router TEXT NOT NULL,
  service TEXT NOT NULL, backend TEXT NOT NULL, model TEXT NOT NULL, kind TEXT NOT NULL,
  calls INTEGER NOT NULL, estimated_calls INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,
  cached_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, micro_usd INTEGER NOT NULL,
  PRIMARY KEY (day, router, service, backend, model, kind)
) WITHOUT ROWID;
COMMIT;
"""


def _adding(column: str) -> str:
    # Beyond 64 bits SQLite goes on with a float.
    return f"{column} = min({MAX_COUNT}, {column} + excluded.{column})"


_SUMS: Final = ("calls", "estimated_calls", "prompt_tokens", "cached_tokens", "completion_tokens", "micro_usd")
ADD_CALLS: Final = (
    "INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    f" ON CONFLICT (day, router, service, backend, model, kind) DO UPDATE SET {', '.join(map(_adding, _SUMS))}"
)
"""Adds to what a process booked: the day, its id, the other fields of the row's key, then its sums."""


def lock(path: Path) -> int:
    """A descriptor that holds the lock of the ledger ``path`` until it is closed, or its process ends in whatever way.
    Makes the folder. Raises LedgerError, also when another process has the lock.
    """
    try:
        path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
        fd = os.open(lock_path(path), _OPEN_FLAGS, _FILE_MODE)
    except OSError as error:
        raise LedgerError(f"the ledger {path} cannot be opened: {error}") from None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        cause = "another process writes it" if isinstance(error, BlockingIOError) else str(error)
        raise LedgerError(f"the ledger {path} cannot be locked: {cause}") from None
    return fd


def connect(path: Path, today: date) -> sqlite3.Connection:
    """A connection to the ledger ``path``, whose lock the caller holds. Rows that were older than ``KEPT_DAYS`` on
    ``today`` are gone. Raises LedgerError, and leaves a file that is no ledger, too new or damaged as it is.
    """
    try:
        _refuse_others(path, _header(path))
        # SQLite gives the files beside it the same mode when it makes them.
        path.chmod(_FILE_MODE)
        connection = sqlite3.connect(path, timeout=_OPENING_PATIENCE_S, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        raise LedgerError(f"the ledger {path} cannot be opened: {error}") from None
    try:
        _prepare(connection, path)
        _forget(connection, today)
        connection.execute("PRAGMA busy_timeout = 0")
    except (sqlite3.Error, LedgerError) as error:
        connection.close()
        if isinstance(error, LedgerError):
            raise
        raise LedgerError(f"the ledger {path} cannot be read: {error}") from None
    return connection


def _header(path: Path) -> bytes:
    """The first bytes of a file, none of one that is made by this."""
    fd = os.open(path, _OPEN_FLAGS, _FILE_MODE)
    try:
        return os.pread(fd, _HEADER_BYTES, 0)
    finally:
        os.close(fd)


def _refuse_others(path: Path, header: bytes) -> None:
    """An empty file is to become a ledger; every other one has been one from its first page on."""
    if not header:
        return
    application = int.from_bytes(header[_APPLICATION_AT : _APPLICATION_AT + 4])
    if not header.startswith(_SQLITE) or application != APPLICATION_ID:
        raise LedgerError(f"{path} is no ledger of router_ext: move it away, or set another server.data_dir")
    _refuse_version(path, int.from_bytes(header[_VERSION_AT : _VERSION_AT + 4]))


def _refuse_version(path: Path, version: int) -> None:
    if version != SCHEMA_VERSION:
        raise LedgerError(f"the ledger {path} is of version {version}, and this router_ext knows {SCHEMA_VERSION} only")


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Mends what a crash left, makes the tables of a new file, and checks an old one.

    The tables are made before the file gets a WAL, so that a crash leaves an empty file or a whole one. With a WAL and
    ``synchronous=NORMAL`` a commit is a write without a sync: what is committed survives the death of the process, and
    of the machine all but the last moments; the file stays whole in any case.
    """
    if connection.execute("PRAGMA page_count").fetchone() == (0,):
        connection.executescript(_MADE)
    elif (found := connection.execute("PRAGMA quick_check(1)").fetchone()) != ("ok",):
        raise LedgerError(f"the ledger {path} is damaged: {found[0]}")
    # Of a newer router that died the WAL alone may know.
    _refuse_version(path, connection.execute("PRAGMA user_version").fetchone()[0])
    if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
        raise LedgerError(f"the ledger {path} is on a file system that cannot share memory")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")


def _forget(connection: sqlite3.Connection, today: date) -> None:
    # A disk without room for it is asked again at the next opening.
    with contextlib.suppress(sqlite3.OperationalError):
        oldest = (today - timedelta(days=KEPT_DAYS)).isoformat()
        connection.execute("DELETE FROM calls WHERE day < ?", (oldest,))
