"""A judge as the router sees it: a child process that answers one request after the other."""

import asyncio
import contextlib
import math
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from typing import Final, Self

from router_ext.schemas.frames import READY, REPLY, Reply, Request, decode_reply, encode_request

START_S: Final = 10.0
"""A judge starts in 0.07 s; a process that says nothing for so long is given up."""

_INHERITED: Final = ("PATH", "PYTHONHOME", "PYTHONPATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL")
"""Variables that a judge gets. Keys of backends are among the others, and it works on what strangers send."""


class JudgeLostError(Exception):
    """The process is gone, or was never there."""


class JudgeProcess:
    """One judge. It gets one request at a time; who does not wait for the reply must kill it."""

    def __init__(self, process: Process) -> None:
        if process.stdin is None or process.stdout is None:
            raise ValueError("a judge needs both pipes")
        self._process = process
        self._requests = process.stdin
        self._replies = process.stdout
        self._reading = asyncio.Lock()

    @classmethod
    async def start(cls, deadline_s: float) -> Self:
        """A judge that waits for requests, none of which takes it more than about ``deadline_s`` of CPU.

        Raises JudgeLostError when it does not start within ``START_S``.
        """
        argv = (sys.executable, "-m", "router_ext.schemas.judge", str(math.ceil(deadline_s)))
        environ = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        try:
            # Its complaints may quote what it read, so they go nowhere.
            process = await asyncio.create_subprocess_exec(*argv, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environ)
        except OSError as error:
            raise JudgeLostError from error
        judge = cls(process)
        await judge._begin()
        return judge

    @property
    def pid(self) -> int:
        """The process id, also after its end."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether its end has been noticed."""
        return self._process.returncode is not None or self._replies.at_eof()

    async def ask(self, request: Request) -> Reply:
        """Its reply, whenever that comes. Raises JudgeLostError when it dies instead."""
        try:
            self._requests.write(encode_request(request))
            await self._requests.drain()
            async with self._reading:
                return decode_reply(await self._replies.readexactly(REPLY.size))
        except (OSError, asyncio.IncompleteReadError) as error:
            raise JudgeLostError from error

    def kill(self) -> None:
        """Ends it at once, whatever it does. May be called again."""
        self._requests.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def wait(self) -> None:
        """Until it has ended, and its process and pipes are gone."""
        await self._process.wait()
        # asyncio lets go of a process when its pipes have ended too. Only one may read them.
        async with self._reading:
            with contextlib.suppress(OSError):
                await self._replies.read()

    async def _begin(self) -> None:
        begun = False
        try:
            async with asyncio.timeout(START_S):
                begun = await self._replies.read(len(READY)) == READY
        except TimeoutError as error:
            raise JudgeLostError from error
        finally:
            if not begun:
                self.kill()
                await self.wait()
        if not begun:
            raise JudgeLostError
