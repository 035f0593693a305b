"""Processes that keep a ledger: one to be killed, one whose disk is full.

``python -m tests.contract.ledger_children NAME FILE``
"""

import json
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from router_ext.costs.days import Dates
from router_ext.ledger.sqlite import SqliteLedger
from tests.fakes.ledger import TODAY, USAGE, key


def _opened(path: Path) -> SqliteLedger:
    return SqliteLedger(path, router="child", today=TODAY)


def _calls(ledger: SqliteLedger) -> int:
    return sum(row.calls for row in ledger.rows(Dates(TODAY, TODAY)))


def flush_until_killed(path: Path) -> None:
    """Flushes of three calls each, of two keys; says after each how many calls were flushed."""
    ledger, calls = _opened(path), 0
    while True:
        for service in ("blog", "shop", "shop"):
            ledger.book(key(service), USAGE, 10, estimated=False)
        assert ledger.flush() == ""
        calls += 3
        print(calls, flush=True)


def flush_then_die(path: Path) -> None:
    """One flush, one call that is booked only, and the end, by its own hand."""
    ledger = _opened(path)
    ledger.book(key(), USAGE, 10, estimated=False)
    assert ledger.flush() == ""
    ledger.book(key(), USAGE, 10, estimated=False)
    signal.raise_signal(signal.SIGKILL)


def hold(path: Path) -> None:
    """Has the ledger until its standard input ends, and dies without closing it."""
    ledger = _opened(path)
    ledger.book(key(), USAGE, 10, estimated=False)
    ledger.flush()
    print("open", flush=True)
    sys.stdin.read()
    signal.raise_signal(signal.SIGKILL)


def fill_the_disk(path: Path) -> None:
    """A limit for the size of files stands in for the disk. Prints the error, the calls that are known, and the error
    of the next flush: while there is no room for any, and when there is.
    """
    ledger = _opened(path)
    ledger.book(key("first"), USAGE, 10, estimated=False)
    ledger.flush()
    size = path.with_name(f"{path.name}-wal").stat().st_size
    for room in (0, 100, 2000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, resource.RLIM_INFINITY))
        ledger.book(key("full"), USAGE, 10, estimated=False)
        error, again = ledger.flush(), ledger.flush()
        print(json.dumps([error, again, _calls(ledger)]), flush=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(json.dumps([ledger.flush(), ledger.flush(), _calls(ledger)]), flush=True)
    signal.raise_signal(signal.SIGKILL)


CHILDREN: Final[dict[str, Callable[[Path], None]]] = {
    "killed": flush_until_killed,
    "dies": flush_then_die,
    "holds": hold,
    "full": fill_the_disk,
}

if __name__ == "__main__":
    CHILDREN[sys.argv[1]](Path(sys.argv[2]))
