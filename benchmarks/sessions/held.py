"""A process that keeps sessions in memory and says what it takes: ``python -m benchmarks.sessions.held COUNT BYTES``.

Sessions grow as in life: each begins with half of its messages, then gets turn after turn, one session after the other.
Bodies are read as the router reads them.
"""

import asyncio
import gc
import json
import sys
from typing import Final

import psutil

from benchmarks.sessions.texts import LONGEST, Writer, chat_body
from router_ext.model.rejection import Rejection
from router_ext.model.session import Turn
from router_ext.payload.answer_message import plain_message
from router_ext.payload.envelope import read_envelope
from router_ext.payload.transcript import read_messages
from router_ext.sessions.limits import StoreLimits
from router_ext.sessions.memory import MemoryStore

_OWNER: Final = "0" * 32


async def fill(store: MemoryStore, count: int, size: int) -> int:
    """Keeps ``count`` sessions of about ``size`` bytes. The bytes of their messages."""
    writer = Writer()
    ids = [f"sess_{number:036d}" for number in range(count)]
    for session_id in ids:
        await store.create(session_id, _OWNER, _turn(writer, writer.conversation(size // 2)), 0.0)
    while (await store.listed(1))[0].bytes < size:
        for session_id in ids:
            await store.append(session_id, _OWNER, _turn(writer, writer.conversation(1)), 0.0)
    return sum(meta.bytes for meta in await store.listed(count))


def _turn(writer: Writer, messages: list[bytes]) -> Turn:
    envelope = read_envelope(chat_body(messages, 4))
    read = envelope if isinstance(envelope, Rejection) else read_messages(envelope)
    if isinstance(read, Rejection):
        raise RuntimeError(read.message)
    kept = plain_message(_answer(writer.text(LONGEST)))
    if kept is None:
        raise RuntimeError("no whole answer")
    return Turn((*read, kept), 1)


def _answer(text: str) -> bytes:
    message = {"role": "assistant", "content": text, "refusal": None}
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()


def main() -> None:
    """The last line is a JSON object."""
    count, size = int(sys.argv[1]), int(sys.argv[2])
    process = psutil.Process()
    gc.collect()
    before = process.memory_info().rss
    store = MemoryStore(StoreLimits(7200, count, 2 * count * size), sys.exit)
    message_bytes = asyncio.run(fill(store, count, size))
    gc.collect()
    resident = process.memory_info().rss
    print(json.dumps({"message_bytes": message_bytes, "grown": resident - before, "resident": resident}))


if __name__ == "__main__":
    main()
