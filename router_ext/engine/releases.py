"""Waiting for a request to end: the end of one may be room for another."""

import asyncio
from typing import Final

from router_ext.engine.pool import Pool

LOOK_S: Final = 0.02
"""How often ends at other workers are looked for while somebody waits: nobody tells of them."""


class Releases:
    """Ends of requests, here and at the router's other workers, as something to wait for."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._released = asyncio.Event()
        self._waiting = 0
        self._timer: asyncio.TimerHandle | None = None

    def tell(self) -> None:
        """A request has ended here: everybody who waits goes on."""
        self._released.set()
        self._released = asyncio.Event()

    async def wait(self, timeout_s: float | None = None) -> None:
        """Returns when a request ends; one at another worker is seen within ``LOOK_S``. Raises TimeoutError."""
        self._waiting += 1
        self._watch()
        try:
            await asyncio.wait_for(self._released.wait(), timeout_s)
        finally:
            self._waiting -= 1
            if not self._waiting and self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _watch(self) -> None:
        """One timer for all who wait, and none where there are no other workers."""
        if self._timer is None and self._pool.tally is not None:
            self._timer = asyncio.get_running_loop().call_later(LOOK_S, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._pool.ended_elsewhere():
            self.tell()
        self._watch()
