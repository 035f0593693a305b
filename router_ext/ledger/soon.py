"""A ledger that is flushed without anybody asking for it."""

import asyncio
from collections.abc import Callable
from datetime import date
from typing import Final

from router_ext.costs.days import Dates
from router_ext.model.ledger import Key, Row
from router_ext.model.outcome import Usage
from router_ext.ports import Ledger

FIRST_RETRY_S: Final = 0.1
MAX_RETRY_S: Final = 5.0
"""How long a file that could not be written is left alone: doubled with each failure in a row."""


class FlushedSoon:
    """Implements ``ports.Ledger``: what is booked is flushed once the event loop is through with what it is at, however
    much was booked until then. While that fails it is tried again, soon at first and then each ``MAX_RETRY_S`` seconds.

    ``told`` hears of a new error, and of "" when everything is on file again; ``changed`` of each key that is booked
    to. ``book`` needs a running event loop.
    """

    def __init__(
        self, ledger: Ledger, told: Callable[[str], None], changed: Callable[[Key], None] | None = None
    ) -> None:
        self._ledger = ledger
        self._told = told
        self._changed = changed
        self._error = ""
        self._due: asyncio.Handle | None = None
        self._retry_s = FIRST_RETRY_S
        self._resting = False

    def book(self, key: Key, usage: Usage, micro_usd: int, *, estimated: bool) -> None:
        """See ``ports.Ledger``."""
        self._ledger.book(key, usage, micro_usd, estimated=estimated)
        if self._changed is not None:
            self._changed(key)
        if self._due is None:
            self._due = asyncio.get_running_loop().call_soon(self._try_again)

    def flush(self) -> str:
        """See ``ports.Ledger``. A file that failed is left alone until its time comes."""
        return self._error if self._resting else self._write()

    def _write(self) -> str:
        error = self._ledger.flush()
        if error != self._error:
            self._error = error
            self._told(error)
        return error

    def rows(self, dates: Dates) -> list[Row]:
        """See ``ports.Ledger``."""
        return self._ledger.rows(dates)

    def spent(self, day: date) -> dict[str, int]:
        """See ``ports.Ledger``."""
        return self._ledger.spent(day)

    def stop(self) -> None:
        """Flushes once more and never again by itself."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
        self._write()

    def _try_again(self) -> None:
        self._due = None
        self._resting = bool(self._write())
        if not self._resting:
            self._retry_s = FIRST_RETRY_S
            return
        self._due = asyncio.get_running_loop().call_later(self._retry_s, self._try_again)
        self._retry_s = min(MAX_RETRY_S, 2 * self._retry_s)
