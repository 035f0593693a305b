"""One kept HTTP/1.1 connection that counts what it sends: a request is one write of known bytes."""

import asyncio
import time
from dataclasses import dataclass, field
from types import TracebackType

HEADERS = (
    ("host", "router.example.com"),
    ("user-agent", "bench/1.0"),
    ("accept", "application/json"),
    ("content-type", "application/json"),
    ("authorization", "Bearer sk-0123456789abcdef0123456789abcdef"),
)
"""What a plain client sends beside the length and the session."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer; names in ``headers`` are lower case. ``sent`` is the request in bytes, headers included, and
    ``seconds`` the time from its first byte to the answer's last.
    """

    status: int
    headers: dict[str, str]
    body: bytes = field(repr=False)
    sent: int
    seconds: float


class Wire:
    """Requests one after the other over one connection to ``port`` of the loopback address."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def __aenter__(self) -> "Wire":
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 22)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._writer.close()

    async def post(self, body: bytes, *extra: tuple[str, str]) -> Answer:
        """A chat request with more headers. Raises RuntimeError for any status but 200."""
        request = head((*HEADERS, *extra), len(body)) + body
        started = time.perf_counter()
        self._writer.write(request)
        status, headers = read_head(await self._reader.readuntil(b"\r\n\r\n"))
        answer = await self._body(headers)
        seconds = time.perf_counter() - started
        if status != 200:
            raise RuntimeError(f"status {status}: {answer[:300].decode(errors='replace')}")
        return Answer(status, headers, answer, len(request), seconds)

    async def _body(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return await self._reader.readexactly(int(headers["content-length"]))
        pieces: list[bytes] = []
        while size := int(await self._reader.readline(), 16):
            pieces.append((await self._reader.readexactly(size + 2))[:-2])
        await self._reader.readline()
        return b"".join(pieces)


def head(headers: tuple[tuple[str, str], ...], length: int) -> bytes:
    """The request line and headers of a chat request whose body has ``length`` bytes."""
    lines = ["POST /v1/chat/completions HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, f"content-length: {length}", "", ""]).encode()


def read_head(raw: bytes) -> tuple[int, dict[str, str]]:
    """Status and headers of an answer's head, which ends with an empty line."""
    first, *lines = raw.decode("latin-1").split("\r\n")[:-2]
    pairs = (line.split(":", 1) for line in lines)
    return int(first.split()[1]), {name.lower(): value.strip() for name, value in pairs}
