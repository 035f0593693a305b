"""Courts with real judges for tests, and how long the event loop was held up."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import psutil

from router_ext.model.gate import SchemaText, SchemaVerdict
from router_ext.schemas.court import JudgeLoss, SchemaCourt

PATIENCE_S = 20.0
"""For what happens soon, on a busy machine too."""

POLL_S = 0.002

MAX_LAG_S = 0.05
"""How long other requests may be held up."""


@dataclass
class Court:
    """A court and what it told."""

    court: SchemaCourt
    losses: list[JudgeLoss] = field(default_factory=list)

    async def judge(self, schema: Any, text: str | bytes) -> SchemaVerdict:
        """The verdict on a text against a schema that is not text yet."""
        return await self.court.judge(schema_text(schema), text)

    async def judge_at_work(self) -> int:
        """The process id of a judge once one has worked for some time: starting takes much less."""
        await until(lambda: any(map(_is_at_work, self.court.pids)))
        return next(filter(_is_at_work, self.court.pids))


@asynccontextmanager
async def open_court(judges: int = 2, deadline_s: float = 20.0, wait_s: float = PATIENCE_S) -> AsyncIterator[Court]:
    """A court that is closed at the end, after which none of its processes is left."""
    losses: list[JudgeLoss] = []
    court = SchemaCourt(judges=judges, deadline_s=deadline_s, wait_s=wait_s, told=losses.append)
    try:
        yield Court(court, losses)
    finally:
        pids = court.pids
        await court.close()
        assert not any(map(psutil.pid_exists, pids))


def schema_text(schema: Any) -> SchemaText:
    """As it comes with a request."""
    return SchemaText(json.dumps(schema).encode())


def bomb(levels: int) -> Any:
    """A schema of 70 bytes a level that applies its innermost schema to a string 2 to the power of ``levels`` times."""
    definitions: dict[str, Any] = {
        f"a{level}": {"allOf": [{"$ref": f"#/$defs/a{level + 1}"}] * 2} for level in range(levels)
    }
    return {"$defs": {**definitions, f"a{levels}": {"type": "string"}}, "$ref": "#/$defs/a0"}


ENDLESS = bomb(55)
"""Would take centuries; less than 4 KB."""


async def until(condition: Callable[[], bool]) -> None:
    """Waits for it, and for what the event loop hears at the same moment."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - a process tells nobody of its end or its work
            await asyncio.sleep(POLL_S)
    await asyncio.sleep(POLL_S)


@contextmanager
def lag() -> Iterator[Callable[[], float]]:
    """Measures, by a task that wants to run every 2 ms, for how many seconds at most the event loop kept it waiting."""
    longest = 0.0

    async def measure() -> None:
        nonlocal longest
        while True:
            before = time.monotonic()
            await asyncio.sleep(POLL_S)
            longest = max(longest, time.monotonic() - before - POLL_S)

    task = asyncio.create_task(measure())
    try:
        yield lambda: longest
    finally:
        task.cancel()


def _is_at_work(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).cpu_times().user > 0.5)
    except psutil.NoSuchProcess:
        return False
