"""The settings that every policy is run at, and the runs themselves."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.routing.policies import PIN, POLICIES, PREDICTED
from benchmarks.routing.simulation import Result, simulate
from benchmarks.routing.trace import Turn, hot_prefix


@dataclass(frozen=True, slots=True)
class Setting:
    """``nodes`` with ``capacity`` blocks of 512 tokens each. The trace runs ``nodes * speed_per_node`` times as fast.

    Without any cache hit, a speed of 0.25 a node asks for 51 % of the cluster's prefill rate, 0.4 for 82 %.
    """

    nodes: int
    speed_per_node: float
    capacity: int

    def __str__(self) -> str:
        load = {MODERATE: "moderate", HEAVY: "heavy"}[self.speed_per_node]
        return f"{self.nodes} nodes, {load} load, {self.capacity:,} blocks"


MODERATE: Final = 0.25
HEAVY: Final = 0.4
SMALL: Final = 2_000
LARGE: Final = 16_000

TABLE: Final = Setting(8, MODERATE, 4_000)
"""8 nodes, arrivals twice as fast: the setting whose gain over the simple policies is stated."""

SETTINGS: Final = (
    *(Setting(nodes, load, size) for nodes in (4, 8, 16, 64) for load in (MODERATE, HEAVY) for size in (SMALL, LARGE)),
    TABLE,
)


@dataclass(frozen=True, slots=True)
class HotSetting:
    """All clients share one system prompt. A node that holds it can serve about 14 requests a second."""

    nodes: int
    per_node: float

    def __str__(self) -> str:
        return f"{self.nodes} nodes, one system prompt for all, {self.per_node:g} requests a second and node"


HOT_SETTINGS: Final = tuple(HotSetting(nodes, rate) for nodes in (8, 64) for rate in (5.0, 9.0))
HOT_REQUESTS: Final = 8_000

Results = dict[str, Result]
"""By policy."""


def run_settings(turns: Sequence[Turn]) -> Iterator[tuple[Setting, Results]]:
    """Runs every policy at one setting after the other."""
    for setting in SETTINGS:
        yield setting, {name: run(turns, name, setting) for name in POLICIES}


def run(turns: Sequence[Turn], policy: str, setting: Setting) -> Result:
    """One policy at one setting."""
    return simulate(turns, policy, setting.nodes, setting.capacity, setting.nodes * setting.speed_per_node)


def run_hot_prefix() -> Iterator[tuple[HotSetting, Results]]:
    """Both policies of the router where all clients share one big system prompt."""
    for setting in HOT_SETTINGS:
        turns = hot_prefix(HOT_REQUESTS, setting.per_node * setting.nodes)
        yield setting, {name: simulate(turns, name, setting.nodes, TABLE.capacity) for name in (PIN, PREDICTED)}
