"""What sessions cost and keep: ``python -m benchmarks.sessions``. The last line is a JSON object.

Exit code 0 whatever the figures are; logs are kept when one that should be 0 is not, such as that of lost
turns.
"""

import asyncio
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from benchmarks.sessions import endurance, footprint, turns
from benchmarks.sessions.openai_upload import openai_upload
from benchmarks.sessions.report import broken, table
from benchmarks.sessions.stack import setup
from benchmarks.stack import stack

_FAST_TPS: Final = 1_000_000


def _say(line: str) -> None:
    print(line, flush=True)


async def _turns(folder: Path) -> dict[str, Any]:
    async with stack(folder, setup("{enabled: true}", _FAST_TPS)) as running:
        figures = turns.figures(await turns.measure(running.port))
        return {**figures, "upload_bytes_openai": await openai_upload(running.port, turns.MESSAGE_BYTES)}


async def _footprint() -> dict[str, Any]:
    free = footprint.free_memory()
    count = footprint.affordable(free)
    if count < footprint.SESSIONS:
        _say(f"  {free >> 20} MiB are free: {count} sessions instead of {footprint.SESSIONS}")
    return await footprint.measure(count)


async def _all(folder: Path) -> dict[str, Any]:
    _say("Turns of a 400 KB conversation")
    figures = await _turns(folder / "turns")
    _say("Memory of the stores")
    figures |= await _footprint()
    _say("Load while router_ext is killed")
    return figures | await endurance.measure(folder / "kills", _say)


def main() -> None:
    """Runs everything and prints the result."""
    begun, folder = time.monotonic(), Path(tempfile.mkdtemp(prefix="rx-sessions-"))
    for part in ("turns", "kills"):
        (folder / part).mkdir()
    figures = asyncio.run(_all(folder))
    for line in table(figures):
        _say(line)
    if broken(figures):
        _say(f"Logs are in {folder}/*/logs.")
    else:
        shutil.rmtree(folder)
    _say(json.dumps(figures | {"wall_s": round(time.monotonic() - begun, 1)}))


if __name__ == "__main__":
    main()
