"""Notices that the configuration file has changed, by content: a ConfigMap's swapped symlink counts like an edit."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from router_ext.config.loader import read_file
from router_ext.config.problem import ConfigError

Change = bytes | ConfigError
"""The file's new content, or why it cannot be read."""


class ConfigWatcher:
    """Polls one file every ``interval_s`` seconds.

    ``digest`` is the SHA-256 (hex) of what the caller has loaded: other content is a change, also at the first poll.
    ``wait`` sleeps between polls.
    """

    def __init__(
        self,
        path: Path,
        interval_s: float = 1.0,
        *,
        digest: str = "",
        wait: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._path = path
        self._interval_s = interval_s
        self._reported = digest
        self._wait = wait

    async def changes(self) -> AsyncIterator[Change]:
        """Yields what differs from what was last reported and was the same in two polls in a row, for ever.

        A file that is being written is passed over until it rests. Loading and deciding are the caller's: bad content
        is a change like good content.
        """
        previous = self._reported
        while True:
            await self._wait(self._interval_s)
            change = await asyncio.to_thread(self._poll)
            state = _state(change)
            if state == previous and state != self._reported:
                self._reported = state
                yield change
            previous = state

    def _poll(self) -> Change:
        try:
            return read_file(self._path)
        except ConfigError as error:
            return error


def _state(change: Change) -> str:
    return str(change) if isinstance(change, ConfigError) else hashlib.sha256(change).hexdigest()
