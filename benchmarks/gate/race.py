"""A bad cheap answer in parallel mode against the fallback alone."""

import asyncio
from typing import Final

from benchmarks.gate.requests import ALONE, MISFIT, SCHEMA, chat, check, fitting, wanted
from benchmarks.load import quantile
from benchmarks.sessions.wire import Wire
from benchmarks.stack import Stack
from router_ext.demo.sim.faults import Faults
from router_ext.model.gate import Quality

ROUNDS: Final = 12
CONNECTIONS: Final = 4
FALLBACK_S: Final = 0.3


async def measure(running: Stack) -> dict[str, float]:
    """The p50 of both, which take turns on each connection, in milliseconds, and their ratio."""
    await running.switch("cheap", Faults(content=MISFIT))
    await running.switch("strong", Faults(content=fitting(1_000), delay_s=FALLBACK_S))
    taken = await asyncio.gather(*(_connection(running.port) for _ in range(CONNECTIONS)))
    alone, both = ([pair[kind] for pairs in taken for pair in pairs] for kind in (0, 1))
    return figures(alone, both)


async def _connection(port: int) -> list[tuple[float, float]]:
    """Seconds of the fallback alone and of both at once."""
    pairs = []
    async with Wire(port) as wire:
        for _ in range(ROUNDS):
            alone = check(await wire.post(ALONE), None)
            both = check(await wire.post(chat(), wanted(SCHEMA)), Quality.FALLBACK)
            pairs.append((alone.seconds, both.seconds))
    return pairs


def figures(alone: list[float], both: list[float]) -> dict[str, float]:
    """From seconds."""
    alone_s, both_s = (quantile(sorted(seconds), 0.5) for seconds in (alone, both))
    return {
        "parallel_vs_fallback": round(both_s / alone_s, 3),
        "fallback_p50_ms": round(alone_s * 1000, 1),
        "parallel_p50_ms": round(both_s * 1000, 1),
    }
