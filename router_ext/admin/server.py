"""Serves the admin application inside the router's event loop."""

import contextlib
import socket
from collections.abc import Iterator

import uvicorn
from fastapi import FastAPI


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: the router owns the signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class AdminServer:
    """One listening socket and the application behind it."""

    def __init__(self, app: FastAPI, host: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family)
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1)
        self._server = _Server(config)

    @property
    def port(self) -> int:
        """The bound port."""
        return int(self._socket.getsockname()[1])

    async def run(self) -> None:
        """Serves until ``stop``."""
        await self._server.serve(sockets=[self._socket])

    def stop(self) -> None:
        """Ends ``run`` after the requests in progress."""
        self._server.should_exit = True
