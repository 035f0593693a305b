"""The parts of a run: three simulated backends of a known speed, and what goes wrong with them."""

import asyncio
import time
from typing import Final

from benchmarks.chaos.report import RouterPage
from benchmarks.chaos.schedule import BACKENDS, Action, Kill, Restart, Switch
from benchmarks.chaos.traffic import MODEL
from benchmarks.stack import Setup, Stack

_LOOK_S: Final = 0.05

_SPEED: Final = ("--model", MODEL, "--prefill-tps", "5000", "--decode-tps", "20000", "--max-num-seqs", "64")
"""A backend serves up to 65 requests a second, so that two of them bear the usual load. An answer is written within
0.1 ms after its first token: a stream whose backend dies in the middle of that is lost.
"""

_ENTRY: Final = (
    '{name: NAME, url: "http://127.0.0.1:{NAME}", type: vllm, model_name: MODEL, '
    "circuit_breaker: {error_threshold: 5, window_seconds: 10s}}"
)

_CONFIG: Final = """\
  queue_aware_routing: true
backends: [ENTRIES]
defaults: {fallback_chain: [NAMES], max_attempts: 3, first_token_timeout: 2s}
"""


def setup() -> Setup:
    """What a run consists of."""
    entries = ", ".join(_ENTRY.replace("NAME", name).replace("MODEL", MODEL) for name in BACKENDS)
    config = _CONFIG.replace("ENTRIES", entries).replace("NAMES", ", ".join(BACKENDS))
    return Setup(config, dict.fromkeys(BACKENDS, _SPEED), envoy_threads=0)


async def do(running: Stack, action: Action) -> None:
    """Makes something go wrong, or right again."""
    match action:
        case Kill(backend):
            await asyncio.to_thread(running.kill_backend, backend)
        case Restart(backend):
            await asyncio.to_thread(running.start_backend, backend)
        case Switch(backend, faults):
            await running.switch(backend, faults)


async def settled_page(running: Stack, patience_s: float) -> RouterPage:
    """The router's metrics once it counts no request as open, or after ``patience_s`` seconds."""
    deadline = time.monotonic() + patience_s
    page = RouterPage.read(await running.metrics())
    while page.in_flight and time.monotonic() < deadline:
        await asyncio.sleep(_LOOK_S)
        page = RouterPage.read(await running.metrics())
    return page
