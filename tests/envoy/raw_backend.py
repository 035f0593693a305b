"""A backend on a bare socket, for behaviour that no web framework has: resets at chosen points of an exchange."""

import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

HEALTHY = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@dataclass
class RawBackend:
    """Answers health probes; ``behave`` gets the socket of every other request after its whole body was read.

    ``bodies`` are those that arrived; ``gone`` is set when a client closes the connection that ``behave`` waits on.
    """

    behave: Callable[[socket.socket, "RawBackend"], None]
    port: int = 0
    bodies: list[bytes] = field(default_factory=list)
    gone: threading.Event = field(default_factory=threading.Event)

    def serve(self, connection: socket.socket) -> None:
        """One connection."""
        reader = connection.makefile("rb")
        while head := _head(reader.readline):
            body = reader.read(int(head.get("content-length", "0")))
            if head[":method"] == "GET":
                connection.sendall(HEALTHY)
                continue
            self.bodies.append(body)
            self.behave(connection, self)
            return


def _head(readline: Callable[[], bytes]) -> dict[str, str]:
    first = readline().decode()
    if not first.strip():
        return {}
    head = {":method": first.split(" ")[0]}
    while line := readline().strip().decode():
        name, _, value = line.partition(":")
        head[name.lower()] = value.strip()
    return head


def answer(connection: socket.socket, _backend: RawBackend) -> None:
    """A complete plain answer."""
    body = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"one"},"finish_reason":"stop"}]}'
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)


def reset(connection: socket.socket, _backend: RawBackend) -> None:
    """Resets the connection: the request was read, and no byte comes back."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def stream_then_reset(*events: bytes) -> Callable[[socket.socket, RawBackend], None]:
    """Begins a stream and resets the connection in the middle of it."""

    def behave(connection: socket.socket, backend: RawBackend) -> None:
        connection.sendall(STREAM_HEAD + b"".join(map(chunk, events)))
        reset(connection, backend)

    return behave


def stream_then_silence(connection: socket.socket, backend: RawBackend) -> None:
    """Sends the headers of a stream, then nothing until the client goes."""
    connection.sendall(STREAM_HEAD)
    while connection.recv(4096):
        pass
    backend.gone.set()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64


@contextmanager
def raw_backend() -> Iterator[RawBackend]:
    """A running backend on a free port, which answers until it is told otherwise."""
    backend = RawBackend(answer)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                backend.serve(self.request)
            except OSError:
                backend.gone.set()

    with _Server(("127.0.0.1", 0), Handler) as server:
        backend.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield backend
        finally:
            server.shutdown()
