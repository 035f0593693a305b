"""Processor time of a passing gated answer beyond that of the same request without the gate."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import psutil

from benchmarks.gate.requests import SCHEMA, chat, check, fitting, wanted
from benchmarks.load import Load, run
from benchmarks.sessions.wire import Wire
from benchmarks.stack import Stack
from router_ext.demo.sim.faults import Faults
from router_ext.model.gate import Quality

ROUNDS: Final = 5
CONNECTIONS: Final = 8
SIZES: Final = (("1kb", 1_000, 480), ("100kb", 100_000, 120))
"""Name, characters of the answer, and requests of each kind in a round."""


@dataclass(frozen=True, slots=True)
class Cpu:
    """Seconds of processor time, user and system: of router_ext's own process, and of the judges that it started."""

    router: float
    judges: float

    def __sub__(self, other: "Cpu") -> "Cpu":
        return Cpu(self.router - other.router, self.judges - other.judges)

    def __truediv__(self, count: float) -> "Cpu":
        return Cpu(self.router / count, self.judges / count)

    @property
    def total(self) -> float:
        """Both."""
        return self.router + self.judges


def cpu_of(pid: int) -> Cpu:
    """What a process and its children have used so far; those that have ended count in it too."""
    process = psutil.Process(pid)
    own = process.cpu_times()
    judges = own.children_user + own.children_system
    for child in process.children():
        times = child.cpu_times()
        judges += times.user + times.system
    return Cpu(own.user + own.system, judges)


async def measure(running: Stack, say: Callable[[str], None]) -> dict[str, float]:
    """Milliseconds of a request for each size of ``SIZES``."""
    figures: dict[str, float] = {}
    for name, size, count in SIZES:
        await running.switch("cheap", Faults(content=fitting(size)))
        pairs = [await _round(running, count) for _ in range(ROUNDS)]
        for plain, gated in pairs:
            say(f"  {name:>5}: plain {_told(plain)}, gated {_told(gated)}")
        figures |= added(name, pairs)
    return figures


async def _round(running: Stack, count: int) -> tuple[Cpu, Cpu]:
    """Processor time of one request without the gate, and with it."""
    async with Wire(running.port) as wire:
        check(await wire.post(chat()), None)
        check(await wire.post(chat(), wanted(SCHEMA)), Quality.PASSED)
    plain = Load(running.port, chat(), count, CONNECTIONS)
    gated = dataclasses.replace(plain, headers=(wanted(SCHEMA),))
    return await _each(running, plain), await _each(running, gated)


async def _each(running: Stack, load: Load) -> Cpu:
    await run(dataclasses.replace(load, count=load.connections * 2))
    before = cpu_of(running.router_pid)
    await run(load)
    return (cpu_of(running.router_pid) - before) / load.count


def added(name: str, pairs: Sequence[tuple[Cpu, Cpu]]) -> dict[str, float]:
    """Medians over the pairs of a request without and with the gate, in milliseconds."""
    differences = [gated - plain for plain, gated in pairs]
    parts = {
        f"gate_cpu_ms_{name}": [each.total for each in differences],
        f"gate_cpu_router_ms_{name}": [each.router for each in differences],
        f"gate_cpu_judges_ms_{name}": [each.judges for each in differences],
        f"plain_cpu_ms_{name}": [plain.total for plain, _ in pairs],
    }
    return {key: round(median(values) * 1000, 3) for key, values in parts.items()}


def _told(cpu: Cpu) -> str:
    return f"{cpu.router * 1000:.2f} + {cpu.judges * 1000:.2f} ms"
