"""A client that writes raw bytes and keeps raw bytes, and a way to wait for a condition."""

import asyncio
from collections.abc import Callable

import orjson

from tests.captures import CapturedResponse, read_response

DEADLINE_S = 10.0


def request_bytes(path: str, payload: object = None, *, method: str = "POST", headers: str = "") -> bytes:
    """A request whose connection ends after its answer; ``payload`` is bytes, or anything that becomes JSON."""
    body = payload if isinstance(payload, bytes) else b"" if payload is None else orjson.dumps(payload)
    head = f"{method} {path} HTTP/1.1\r\nHost: sim\r\nConnection: close\r\nContent-Type: application/json\r\n"
    return f"{head}{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def send_raw(port: int, raw: bytes) -> bytes:
    """Everything that comes back until the connection ends; a reset ends it, too."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    received = b""
    try:
        async with asyncio.timeout(DEADLINE_S):
            writer.write(raw)
            while piece := await reader.read(65_536):
                received += piece
    except ConnectionResetError:
        pass
    finally:
        writer.close()
    return received


async def send(port: int, raw: bytes) -> CapturedResponse:
    """The parsed answer to a raw request."""
    return read_response(await send_raw(port, raw))


async def post(port: int, path: str, payload: object, headers: str = "") -> CapturedResponse:
    """The answer to a JSON body."""
    return await send(port, request_bytes(path, payload, headers=headers))


async def get(port: int, path: str, headers: str = "") -> CapturedResponse:
    """The answer to a GET."""
    return await send(port, request_bytes(path, method="GET", headers=headers))


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds; TimeoutError after ten seconds."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - the condition is any expression, nobody sets an event for it
            await asyncio.sleep(0.002)


def chat(content: str = "Say hi", **more: object) -> dict[str, object]:
    """A chat body with one user message."""
    return {"model": "sim", "messages": [{"role": "user", "content": content}], **more}
