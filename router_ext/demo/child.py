"""Child processes of the demo and of the tests: started with a log file, always stopped."""

import os
import random
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

STOP_PATIENCE_S: Final = 5.0


class Child:
    """One process. Its output goes to ``log``; it dies with ``stop``, politely first."""

    def __init__(self, name: str, argv: Sequence[str], log: Path, environ: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.log = log
        self._argv = list(argv)
        self._environ = {**os.environ, **(environ or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the process, in a session of its own so that a Ctrl-C reaches it through us only."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environ,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id. Raises RuntimeError before ``start``."""
        if self._process is None:
            raise RuntimeError(f"{self.name} was not started")
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, None while it runs or before it was started."""
        return self._process.poll() if self._process is not None else None

    def send(self, number: signal.Signals) -> None:
        """Sends a signal; nothing happens when the process is gone."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        """``kill -9``, and waits."""
        self.send(signal.SIGKILL)
        self._wait(STOP_PATIENCE_S)

    def stop(self, patience_s: float = STOP_PATIENCE_S) -> int | None:
        """SIGTERM, then SIGKILL after ``patience_s`` seconds. Returns the exit code, None when it was never started."""
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        if not self._wait(patience_s):
            self.kill()
        return self.exit_code

    def last_lines(self, number: int = 15) -> str:
        """The end of the log, for a failure message."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-number:])

    def _wait(self, patience_s: float) -> bool:
        if self._process is None:
            return True
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            return False
        return True


def free_port(preferred: int = 0) -> int:
    """``preferred`` when nothing listens there, else a free TCP port, drawn at random.

    It lies below the range from which Linux takes the ports of outgoing connections, so none of those gets it first.
    Raises OSError when there is none.
    """
    candidates = (preferred, *random.sample(range(12_000, 32_000), 200)) if preferred else _DRAWN
    for port in candidates:
        if _is_free(port):
            return port
    raise OSError("no free port")


_DRAWN = iter(random.sample(range(12_000, 32_000), 20_000))
"""Each port once in a process, so that two services that are not bound yet do not get the same."""


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
