"""Reads raw HTTP requests and responses that were recorded from real engines."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

FOLDER = Path(__file__).parent / "data" / "captures"


@dataclass(frozen=True, slots=True)
class CapturedRequest:
    """One request. Header names are in lower case; ``raw`` is what goes over the wire."""

    raw: bytes
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class CapturedResponse:
    """One response. ``chunks`` are the pieces of a chunked body, empty otherwise.

    ``complete`` is False when the connection ended before the last chunk or before ``content-length`` bytes.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    chunks: tuple[bytes, ...]
    complete: bool

    def json(self) -> Any:
        """The body as JSON."""
        return orjson.loads(self.body)

    def events(self) -> list[Any]:
        """The data of each server-sent event: JSON, or the text itself where it is none (``[DONE]``)."""
        return [_data(block) for block in self.body.decode().split("\n\n") if block.strip()]


def load_request(engine: str, name: str) -> CapturedRequest:
    """The recorded request ``name`` to ``vllm`` or ``llamacpp``."""
    return read_request((FOLDER / engine / f"{name}.req").read_bytes())


def load_response(engine: str, name: str) -> CapturedResponse:
    """The recorded response ``name`` of ``vllm`` or ``llamacpp``."""
    return read_response((FOLDER / engine / f"{name}.resp").read_bytes())


def read_request(raw: bytes) -> CapturedRequest:
    """A request with its whole body."""
    start, headers, body = _split(raw)
    method, path, _ = start.split(" ", 2)
    return CapturedRequest(raw, method, path, headers, body)


def read_response(raw: bytes) -> CapturedResponse:
    """A response up to the end of its connection."""
    start, headers, body = _split(raw)
    status = int(start.split(" ")[1])
    if headers.get("transfer-encoding") == "chunked":
        chunks, complete = _read_chunks(body)
        return CapturedResponse(status, headers, b"".join(chunks), chunks, complete)
    complete = len(body) >= int(headers.get("content-length", 0))
    return CapturedResponse(status, headers, body, (), complete)


def _split(raw: bytes) -> tuple[str, dict[str, str], bytes]:
    head, _, body = raw.partition(b"\r\n\r\n")
    start, *lines = head.decode().split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return start, {name.lower(): value.strip() for name, _, value in pairs}, body


def _read_chunks(body: bytes) -> tuple[tuple[bytes, ...], bool]:
    chunks: list[bytes] = []
    while body:
        size_line, _, rest = body.partition(b"\r\n")
        size = int(size_line, 16)
        if size == 0:
            return tuple(chunks), True
        chunks.append(rest[:size])
        body = rest[size + 2 :]
    return tuple(chunks), False


def _data(block: str) -> Any:
    text = "\n".join(line[5:].removeprefix(" ") for line in block.split("\n") if line.startswith("data:"))
    return orjson.loads(text) if text.startswith("{") else text
