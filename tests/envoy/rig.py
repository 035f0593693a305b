"""A real Envoy process for tests: started on a given bootstrap, waited for, and stopped; its logs stay on disk."""

import json
import os
import signal
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from router_ext.demo.child import free_port
from router_ext.envoygen.binary import find_envoy

__all__ = ["EnvoyFailedError", "EnvoyProcess", "free_port", "short_directory", "wait_until"]

POLL_S = 0.02
_TAIL_CHARACTERS = 4000


class EnvoyFailedError(AssertionError):
    """Envoy did not start, or ended early; the message holds the end of its log."""


@contextmanager
def short_directory() -> Iterator[Path]:
    """A temporary directory whose path leaves room for Unix sockets (107 bytes)."""
    with tempfile.TemporaryDirectory(prefix="rx-", dir="/tmp") as name:
        yield Path(name)


def wait_until(condition: Callable[[], bool], what: str, deadline_s: float = 10.0) -> None:
    """Polls ``condition`` until it holds; an AssertionError naming ``what`` after ``deadline_s`` seconds."""
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"not within {deadline_s} s: {what}"
        time.sleep(POLL_S)


class EnvoyProcess:
    """One Envoy on ``bootstrap``. Its log is ``envoy.log`` and its access log ``access.log`` in ``directory``.

    ``admin_port`` must be the admin port of the bootstrap. Use it as a context manager, or call ``start`` and ``stop``.
    """

    def __init__(self, bootstrap: Path, admin_port: int, directory: Path, *, deadline_s: float = 20.0) -> None:
        self.bootstrap = bootstrap
        self.admin_port = admin_port
        self.log_path = directory / "envoy.log"
        self.access_log_path = directory / "access.log"
        self._deadline_s = deadline_s
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """The process id; only while it runs."""
        assert self._process is not None, "Envoy was not started"
        return self._process.pid

    def start(self) -> None:
        """Starts Envoy and waits until it serves. Raises EnvoyFailedError with the end of its log."""
        command = [
            str(find_envoy()),
            *("-c", str(self.bootstrap)),
            *("--concurrency", "1"),
            *("--drain-time-s", "1"),
            "--disable-hot-restart",
        ]
        with self.log_path.open("ab") as log, self.access_log_path.open("ab") as access_log:
            self._process = subprocess.Popen(command, stdout=access_log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            self._await_ready(self._process)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Ends Envoy, by force when it has not ended after five seconds."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """Ends Envoy at once."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait(timeout=5)
            self._process = None

    def admin(self, path: str) -> str:
        """The text that the admin interface answers to a GET of ``path``. Raises OSError, also for an error status."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}{path}", timeout=5) as answer:
            text: str = answer.read().decode()
            return text

    def stat(self, name: str) -> int:
        """The value of one counter or gauge, 0 when Envoy does not know it."""
        lines = self.admin(f"/stats?filter=^{name}$").splitlines()
        return int(lines[0].rsplit(": ", 1)[1]) if lines else 0

    def access_log(self) -> list[dict[str, Any]]:
        """The JSON access log so far (Envoy flushes it every ten seconds and when it ends)."""
        text = self.access_log_path.read_text(encoding="utf-8")
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def log_tail(self) -> str:
        """The end of Envoy's own log."""
        return self.log_path.read_text(encoding="utf-8", errors="replace")[-_TAIL_CHARACTERS:]

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + self._deadline_s
        while not self._ready():
            if process.poll() is not None:
                raise EnvoyFailedError(f"Envoy ended with {process.returncode}, {self.log_path}:\n{self.log_tail()}")
            if time.monotonic() > end:
                raise EnvoyFailedError(f"Envoy is not ready, {self.log_path}:\n{self.log_tail()}")
            time.sleep(POLL_S)

    def _ready(self) -> bool:
        try:
            return self.admin("/ready").startswith("LIVE")
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False
