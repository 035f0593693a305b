"""The traffic: requests at fixed times, whatever the answers do."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import repeat
from typing import Final

from benchmarks.sessions.texts import Writer
from benchmarks.sessions.wire import Answer, Wire
from benchmarks.shadow.stack import Arm
from router_ext.model.headers import SERVICE

CONNECTIONS: Final = 24
PERIOD_S: Final = 0.2
"""From one request of a connection to its next: twice as long as an answer takes."""

REQUESTS: Final = 72
"""Of a stretch, which takes 0.7 s: 120 requests a second."""

_TOKENS: Final = 40


def bodies(seed: int, count: int = REQUESTS) -> list[bytes]:
    """Chat requests of about 1 KB, no two alike, plain and streamed in turn. All answers are of the same length."""
    writer = Writer(seed)
    return [_body(f"{seed}.{number}: {writer.text(900)}", stream=number % 2 == 1) for number in range(count)]


def _body(content: str, *, stream: bool) -> bytes:
    messages = [{"role": "user", "content": content}]
    fields = {"model": "sim", "messages": messages, "max_tokens": _TOKENS, "ignore_eos": True, "stream": stream}
    return json.dumps(fields, separators=(",", ":")).encode()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[list[Wire]]:
    """The connections of a whole run."""
    async with AsyncExitStack() as opened:
        yield [await opened.enter_async_context(Wire(port)) for _ in range(CONNECTIONS)]


async def stretch(wires: Sequence[Wire], asked: Sequence[bytes], arm: Arm) -> list[Answer]:
    """The answers to ``asked``, in that order."""
    begin = asyncio.get_running_loop().time()
    shares = [asked[at :: len(wires)] for at in range(len(wires))]
    dues = [begin + PERIOD_S * at / len(wires) for at in range(len(wires))]
    return in_order(await asyncio.gather(*map(_connection, wires, shares, dues, repeat(arm))))


async def _connection(wire: Wire, asked: Sequence[bytes], due: float, arm: Arm) -> list[Answer]:
    loop, answers = asyncio.get_running_loop(), list[Answer]()
    for body in asked:
        await asyncio.sleep(due - loop.time())
        answers.append(await wire.post(body, (SERVICE, arm.value)))
        due += PERIOD_S
    return answers


def in_order(dealt: Sequence[Sequence[Answer]]) -> list[Answer]:
    """What was dealt out one by one, put together again."""
    return [dealt[at % len(dealt)][at // len(dealt)] for at in range(sum(map(len, dealt)))]
