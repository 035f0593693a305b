"""Rows of a ledger, and one that cannot be written."""

from datetime import date

from router_ext.costs.days import Dates
from router_ext.model.ledger import Key, Row, row_of, summed
from router_ext.model.outcome import Usage
from router_ext.ports import LedgerError

TODAY = date(2026, 12, 2)


def key(service: str = "shop", backend: str = "a", model: str = "m-a", kind: str = "proxied", day: date = TODAY) -> Key:
    """The key of a row of today."""
    return Key(day, service, backend, model, kind)


def row(of: Key, calls: int = 1, micro_usd: int = 10) -> Row:
    """A row whose calls had 100 prompt tokens each, 40 of them cached, and 7 of an answer; none is estimated."""
    return Row(of, calls, 0, 100 * calls, 40 * calls, 7 * calls, micro_usd)


USAGE = Usage(100, 7, 40)
"""One call of ``row``."""


class FakeLedger:
    """Implements ``ports.Ledger``. ``error`` is what a flush meets; ``unreadable`` refuses to tell anything."""

    def __init__(self, *rows: Row) -> None:
        self.kept = list(rows)
        self.waiting: list[Row] = []
        self.error = ""
        self.flushes = 0
        self.unreadable = False

    def book(self, key: Key, usage: Usage, micro_usd: int, *, estimated: bool) -> None:
        """Waits for a flush."""
        self.waiting.append(row_of(key, usage, micro_usd, estimated=estimated))

    def flush(self) -> str:
        """Keeps what waits unless there is an error."""
        self.flushes += 1
        if not self.error:
            self.kept += self.waiting
            self.waiting = []
        return self.error

    def rows(self, dates: Dates) -> list[Row]:
        """What was booked."""
        if self.unreadable:
            raise LedgerError("the ledger /secret/place cannot be read: disk I/O error")
        return summed(row for row in self.kept + self.waiting if row.key.day in dates)

    def spent(self, day: date) -> dict[str, int]:
        """By service."""
        totals: dict[str, int] = {}
        for row in self.rows(Dates(day, day)):
            totals[row.key.service] = totals.get(row.key.service, 0) + row.micro_usd
        return totals
