"""One run: traffic and faults side by side, then a look at the router."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.chaos.client import Result, send_all
from benchmarks.chaos.report import RouterPage
from benchmarks.chaos.schedule import Step, describe, steps
from benchmarks.chaos.stack import do, settled_page, setup
from benchmarks.chaos.traffic import traffic
from benchmarks.stack import Stack, stack

SETTLE_S: Final = 10.0
"""How long the router may take to count the last requests as ended: access log entries come within 50 ms, and one that
is lost is given up after six seconds.
"""


@dataclass(frozen=True, slots=True)
class Settings:
    """A run of ``seconds`` with ``rate`` requests a second; ``seed`` fixes the prompts and which are streamed."""

    seconds: float
    rate: float
    seed: int


async def run(settings: Settings, folder: Path, say: Callable[[str], None]) -> tuple[list[Result], RouterPage]:
    """The results in order of time, and the router's metrics afterwards. Logs are in ``folder``/logs."""
    async with stack(folder, setup()) as running:
        requests = traffic(settings.seconds, settings.rate, settings.seed)
        started = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            sent = tasks.create_task(send_all(f"http://127.0.0.1:{running.port}", requests, started))
            tasks.create_task(_inject(running, steps(settings.seconds), started, say))
        return sent.result(), await settled_page(running, SETTLE_S)


async def _inject(running: Stack, faults: tuple[Step, ...], started: float, say: Callable[[str], None]) -> None:
    for step in faults:
        await asyncio.sleep(started + step.at_s - time.monotonic())
        say(f"{step.at_s:7.2f} s  {describe(step.action)}")
        await do(running, step.action)
