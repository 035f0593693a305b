"""How long plain requests wait while hostile schemas are judged."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from benchmarks.gate.requests import BOMB, PATTERN, VICTIM, chat, check, wanted
from benchmarks.sessions.wire import Wire
from benchmarks.stack import Stack
from router_ext.demo.sim.faults import Faults

ROUNDS: Final = 5
STRETCH_S: Final = 2.2
PERIOD_S: Final = 0.02
CONNECTIONS: Final = 25
"""So many plain requests at equal distances; a connection waits for its answer, so 0.5 s of delay leave the pace."""

PATTERN_PAUSE_S: Final = 0.02
BOMB_PAUSE_S: Final = 0.3
"""Between two bombs a judge has time for other schemas."""

BOMBERS: Final = 2
"""As many as there are judges: each keeps one busy for as long as it may work."""


@dataclass(slots=True)
class Attack:
    """Callers that mean harm, and how many answers they got to each of the two schemas."""

    port: int
    patterns: int = 0
    bombs: int = 0

    async def send_patterns(self) -> None:
        """One caller, for ever."""
        async with Wire(self.port) as wire:
            while True:
                await wire.post(chat(), wanted(PATTERN))
                self.patterns += 1
                await asyncio.sleep(PATTERN_PAUSE_S)

    async def send_bombs(self) -> None:
        """One caller, for ever."""
        async with Wire(self.port) as wire:
            while True:
                await wire.post(chat(), wanted(BOMB))
                self.bombs += 1
                await asyncio.sleep(BOMB_PAUSE_S)


async def measure(running: Stack, say: Callable[[str], None]) -> dict[str, Any]:
    """Milliseconds; the largest delay of a round is that beyond the largest of the stretch before it."""
    for name in ("cheap", "strong"):
        await running.switch(name, Faults(content=VICTIM))
    rounds = []
    for _ in range(ROUNDS):
        quiet = max(await _stretch(running.port))
        async with _attacked(running.port) as attack:
            hostile = max(await _stretch(running.port))
        rounds.append((quiet, hostile))
        beside = f"{attack.bombs} bombs and {attack.patterns} patterns"
        say(f"  alone {quiet * 1000:.1f} ms, beside {beside} {hostile * 1000:.1f} ms")
    return figures(rounds)


@asynccontextmanager
async def _attacked(port: int) -> AsyncIterator[Attack]:
    attack = Attack(port)
    callers = [attack.send_patterns(), *(attack.send_bombs() for _ in range(BOMBERS))]
    tasks = [asyncio.create_task(caller) for caller in callers]
    try:
        yield attack
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            await task


async def _stretch(port: int) -> list[float]:
    """How many seconds each plain request took."""
    begin = asyncio.get_running_loop().time()
    each = await asyncio.gather(*(_plain(port, begin + PERIOD_S * at) for at in range(CONNECTIONS)))
    return [taken for connection in each for taken in connection]


async def _plain(port: int, due: float) -> list[float]:
    loop, taken = asyncio.get_running_loop(), list[float]()
    end = due + STRETCH_S
    async with Wire(port) as wire:
        while due < end:
            await asyncio.sleep(due - loop.time())
            taken.append(check(await wire.post(chat()), None).seconds)
            due += PERIOD_S * CONNECTIONS
    return taken


def figures(rounds: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """From the largest seconds without and with hostile schemas in each round: the median of what they differ by, and
    the least with them beyond the least without, as what else the machine does can only add to either.
    """
    delays = [(hostile - quiet) * 1000 for quiet, hostile in rounds]
    least = (min(hostile for _, hostile in rounds) - min(quiet for quiet, _ in rounds)) * 1000
    return {
        "other_request_delay_ms_max": round(median(delays), 1),
        "other_request_delay_ms_max_least": round(least, 1),
        "other_request_delay_ms_max_rounds": [round(delay, 1) for delay in delays],
    }
