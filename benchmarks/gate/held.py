"""A stream that is held and passes, against the same stream that nobody holds: when its last byte comes."""

import asyncio
from typing import Final

from benchmarks.gate.requests import SCHEMA, chat, check, fitting, wanted
from benchmarks.gate.stack import PACED_MODEL
from benchmarks.load import quantile
from benchmarks.sessions.wire import Wire
from benchmarks.stack import Stack
from router_ext.demo.sim.faults import Faults
from router_ext.model.gate import Quality

ROUNDS: Final = 8
CONNECTIONS: Final = 4
SIZE: Final = 300
"""One record, about 80 tokens."""


async def measure(running: Stack) -> dict[str, float]:
    """The p50 of both, which take turns on each connection, in milliseconds."""
    await running.switch("paced", Faults(content=fitting(SIZE)))
    taken = await asyncio.gather(*(_connection(running.port) for _ in range(CONNECTIONS)))
    plain, held = ([pair[kind] for pairs in taken for pair in pairs] for kind in (0, 1))
    return figures(plain, held)


async def _connection(port: int) -> list[tuple[float, float]]:
    pairs = []
    body = chat(PACED_MODEL, stream=True)
    async with Wire(port) as wire:
        for _ in range(ROUNDS):
            plain = check(await wire.post(body), None)
            held = check(await wire.post(body, wanted(SCHEMA)), Quality.PASSED)
            pairs.append((plain.seconds, held.seconds))
    return pairs


def figures(plain: list[float], held: list[float]) -> dict[str, float]:
    """From seconds."""
    plain_ms, held_ms = (quantile(sorted(seconds), 0.5) * 1000 for seconds in (plain, held))
    return {"held_stream_added_ms": round(held_ms - plain_ms, 2), "stream_p50_ms": round(plain_ms, 1)}
