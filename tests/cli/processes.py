"""``router-ext`` as a process, under a shell or a terminal."""

import asyncio
import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

DEADLINE_S = 25.0
ROUTER_EXT = (sys.executable, "-m", "router_ext.cli.main")
BASH_FUNCTION = f'router-ext() {{ "{sys.executable}" -m router_ext.cli.main "$@"; }}\n'
NONE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Ended:
    """What a process printed and returned."""

    code: int
    out: str
    err: str


def in_bash(script: str, folder: Path, environ: Mapping[str, str] = NONE) -> Ended:
    """Runs a script that may use ``router-ext``. The exit code is the shell's."""
    given = {**os.environ, **environ}
    done = subprocess.run(
        ["bash", "-c", BASH_FUNCTION + script],
        cwd=folder,
        env=given,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


async def run(*arguments: str, environ: Mapping[str, str] = NONE) -> Ended:
    """Runs ``router-ext`` to its end while the event loop goes on."""
    process = await start(*arguments, environ=environ)
    out, err = await asyncio.wait_for(process.communicate(), DEADLINE_S)
    return Ended(process.returncode or 0, out.decode(), err.decode())


async def start(*arguments: str, environ: Mapping[str, str] = NONE) -> asyncio.subprocess.Process:
    """Starts ``router-ext`` with its output in pipes."""
    return await asyncio.create_subprocess_exec(
        *ROUTER_EXT,
        *arguments,
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


class Terminal:
    """``router-ext`` on a terminal of its own."""

    def __init__(self, process: subprocess.Popen[bytes], descriptor: int) -> None:
        self.process = process
        self.shown = b""
        self._descriptor = descriptor

    def press(self, keys: bytes) -> None:
        """What a person types."""
        os.write(self._descriptor, keys)

    def resize(self, *, columns: int, lines: int) -> None:
        """What a person does to the window: its process is told by SIGWINCH."""
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    async def until(self, text: bytes) -> None:
        """Waits until ``text`` was shown. Raises AssertionError after the deadline, with what was."""
        end = time.monotonic() + DEADLINE_S
        while text not in self.shown:
            assert time.monotonic() < end, self.shown[-2000:]
            await self._read()

    async def ended(self) -> int:
        """The exit code, once it has ended."""
        end = time.monotonic() + DEADLINE_S
        while self.process.poll() is None:
            assert time.monotonic() < end, self.shown[-2000:]
            await self._read()
        await self._read()
        return int(self.process.returncode)

    async def _read(self) -> None:
        # A terminal whose process has ended is read with an error.
        with suppress(BlockingIOError, OSError):
            self.shown += os.read(self._descriptor, 65536)
        await asyncio.sleep(0.01)


@contextmanager
def terminal(*arguments: str, environ: Mapping[str, str] = NONE) -> Iterator[Terminal]:
    """Starts ``router-ext`` with a terminal as all of its standard streams."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    given = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "140", "LINES": "30", **environ}
    # A process of a new session gets the terminal that it opens: then Ctrl-C reaches it.
    opened = ["sh", "-c", 'exec "$@" < "$0" > "$0" 2>&1', os.ttyname(theirs), *ROUTER_EXT, *arguments]
    process = subprocess.Popen(opened, env=given, start_new_session=True)
    try:
        yield Terminal(process, ours)
    finally:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.wait(DEADLINE_S)
        os.close(theirs)
        os.close(ours)
