"""Serves the admin application inside the router's event loop."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import uvicorn
from fastapi import FastAPI


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: the router owns the signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class AdminServer:
    """The application behind a listening socket."""

    def __init__(self, app: FastAPI, listening: socket.socket) -> None:
        self._socket = listening
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            # Nobody but a proxy of one's own could be believed, and the peer's address is told in the audit.
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=1,
        )
        self._server = _Server(config)

    async def run(self) -> None:
        """Serves until ``stop``."""
        await self._server.serve(sockets=[self._socket])

    def stop(self) -> None:
        """Ends ``run`` after the requests in progress."""
        self._server.should_exit = True


def tcp_socket(host: str, port: int) -> socket.socket:
    """A listening TCP socket. Raises OSError when the address is taken."""
    return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)


def unix_socket(path: Path) -> socket.socket:
    """A listening Unix socket in place of what is at ``path``. Raises OSError, also for a path of over 107 bytes."""
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(str(path))
    listening.listen()
    return listening
