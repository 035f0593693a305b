"""The system's resolver, in threads of its own: a name server that says nothing must not hold up other work, which
shares the event loop's few threads, nor the end of the process.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

MAX_LOOK_UPS: Final = 4
"""Most names that are looked up at once, those that nobody waits for any more included."""

Blocking = Callable[[str, int], Sequence[str]]
"""The addresses of a host and port, after a while. Raises OSError and UnicodeError."""


def addresses_of(host: str, port: int) -> Sequence[str]:
    """What the system says, also of what numeric spellings as ``0x7f.1`` mean. Blocks, and raises OSError and
    UnicodeError.
    """
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class Resolver:
    """Looks names up. Used from one event loop."""

    def __init__(self, blocking: Blocking = addresses_of) -> None:
        self._blocking = blocking
        self._free = threading.BoundedSemaphore(MAX_LOOK_UPS)

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """The addresses. Raises OSError, also when too many names are being looked up, and UnicodeError."""
        if not self._free.acquire(blocking=False):
            raise OSError("too many names are being looked up")
        loop = asyncio.get_running_loop()
        found: asyncio.Future[Sequence[str]] = loop.create_future()
        threading.Thread(target=self._look_up, args=(loop, found, host, port), name="look-up", daemon=True).start()
        return await found

    def _look_up(
        self, loop: asyncio.AbstractEventLoop, found: asyncio.Future[Sequence[str]], host: str, port: int
    ) -> None:
        result: Sequence[str] | Exception
        try:
            result = self._blocking(host, port)
        except (OSError, UnicodeError) as error:
            result = error
        finally:
            self._free.release()
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(_settle, found, result)


def _settle(found: asyncio.Future[Sequence[str]], result: Sequence[str] | Exception) -> None:
    """Nobody waits for what was given up."""
    if found.done():
        return
    if isinstance(result, Exception):
        found.set_exception(result)
    else:
        found.set_result(result)
