"""What the openai package uploads for one turn, counted by a relay between it and Envoy."""

import asyncio
from typing import Final

from openai import AsyncOpenAI

from benchmarks.sessions.texts import Writer
from router_ext.model.headers import SESSION_CREATE, SESSION_ID

_PIECE: Final = 1 << 16


class _Relay:
    """Passes bytes on to ``port``; ``sent`` counts those of clients."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.sent = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection of a client, until it closes."""
        back, forth = await asyncio.open_connection("127.0.0.1", self._port)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._pass(reader, forth, counted=True))
            tasks.create_task(self._pass(back, writer, counted=False))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counted: bool) -> None:
        while piece := await reader.read(_PIECE):
            self.sent += len(piece) if counted else 0
            writer.write(piece)
            await writer.drain()
        writer.close()


async def openai_upload(port: int, message_bytes: int) -> int:
    """Bytes of a turn that the openai package sends to a session, headers included."""
    relay = _Relay(port)
    server = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server, AsyncOpenAI(base_url=base, api_key="sk-0123456789abcdef0123456789abcdef") as client:
        text = Writer().text(message_bytes)
        first = await _ask(client, text, SESSION_CREATE, "true")
        before = relay.sent
        await _ask(client, text, SESSION_ID, first)
        return relay.sent - before


async def _ask(client: AsyncOpenAI, text: str, header: str, value: str) -> str:
    """The id of the session."""
    answer = await client.chat.completions.with_raw_response.create(
        model="sim", messages=[{"role": "user", "content": text}], max_tokens=4, extra_headers={header: value}
    )
    return str(answer.headers[SESSION_ID])
