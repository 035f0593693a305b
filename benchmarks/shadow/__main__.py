"""What shadows cost callers: ``python -m benchmarks.shadow``. The last line is a JSON object.

Exit code 0 whatever the figures are.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmarks.shadow.counts import check, counts
from benchmarks.shadow.report import table
from benchmarks.shadow.rounds import figures, measure
from benchmarks.shadow.stack import HANGING_BACKEND, SETUP, Arm
from benchmarks.shadow.traffic import bodies, connected, stretch
from benchmarks.stack import stack
from router_ext.demo.sim.faults import Faults

_WARM_UP_SEED: Final = 1000


def _say(line: str) -> None:
    print(line, flush=True)


async def _all(folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    async with stack(folder, SETUP) as running, connected(running.port) as wires:
        await running.switch(HANGING_BACKEND, Faults(hang=True))
        for arm in Arm:
            await stretch(wires, bodies(_WARM_UP_SEED), arm)
        say("p99 of the callers' latency")
        rounds = await measure(wires, say)
        return {**figures(rounds), **check(counts(await running.metrics()))}


def main() -> None:
    """Runs everything and prints the result."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rx-shadow-") as name:
        seen = asyncio.run(_all(Path(name), _say))
    for line in table(seen):
        _say(line)
    _say(json.dumps(seen | {"wall_s": round(time.monotonic() - begun, 1)}))


if __name__ == "__main__":
    main()
