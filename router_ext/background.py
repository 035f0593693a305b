"""Tasks beside the routing of requests: what fails in one ends neither the others nor the router."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final

from router_ext.ports import Telemetry

RESTART_DELAY_S: Final = 1.0
"""How long a background task that failed rests."""

Work = Callable[[], Coroutine[Any, Any, None]]


@asynccontextmanager
async def background_tasks(telemetry: Telemetry) -> AsyncIterator[Callable[[str, Work], None]]:
    """Starts tasks that end with the block. One that fails is counted, logged, and begun again after a moment."""
    tasks: list[asyncio.Task[None]] = []
    async with asyncio.TaskGroup() as group:

        def start(name: str, work: Work) -> None:
            tasks.append(group.create_task(_supervised(name, work, telemetry), name=name))

        try:
            yield start
        finally:
            for task in tasks:
                task.cancel()


async def _supervised(name: str, work: Work, telemetry: Telemetry) -> None:
    while True:
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - a scrape that meets a bug must not end the routing of requests
            telemetry.fault(name, error)
        await asyncio.sleep(RESTART_DELAY_S)
