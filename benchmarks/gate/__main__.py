"""What the quality gate costs: ``python -m benchmarks.gate``. The last line is a JSON object.

Exit code 0 whatever the figures are.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.gate import cpu, held, hostile, race
from benchmarks.gate.report import table
from benchmarks.gate.stack import setup
from benchmarks.stack import stack


def _say(line: str) -> None:
    print(line, flush=True)


async def _all(folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    async with stack(folder / "sequential", setup("sequential")) as running:
        say("Processor CPU of a request, router_ext + judges")
        figures: dict[str, Any] = await cpu.measure(running, say)
        say("Streams")
        figures |= await held.measure(running)
        say("Slowest plain request")
        figures |= await hostile.measure(running, say)
    async with stack(folder / "parallel", setup("parallel")) as running:
        say("Both at once")
        return figures | await race.measure(running)


def main() -> None:
    """Runs everything and prints the result."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rx-gate-") as name:
        for part in ("sequential", "parallel"):
            (Path(name) / part).mkdir()
        figures = asyncio.run(_all(Path(name), _say))
    for line in table(figures):
        _say(line)
    _say(json.dumps(figures | {"wall_s": round(time.monotonic() - begun, 1)}))


if __name__ == "__main__":
    main()
