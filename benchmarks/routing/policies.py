"""The policies that are compared. Only the oracle looks into the nodes."""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from benchmarks.routing.cluster import Node, Served
from benchmarks.routing.core import CorePolicy
from benchmarks.routing.trace import Turn
from router_ext.model.affinity import Balancing


class Policy(Protocol):
    """Chooses a node for each request and is told how it went, as a router would be."""

    def choose(self, number: int, turn: Turn, now: float) -> int:
        """The index of the node that takes request ``number``."""
        ...

    def first_token(self, number: int, now: float) -> None:
        """Its first token passed."""
        ...

    def end(self, number: int, served: Served, now: float) -> None:
        """Its answer ended; of ``served`` a router sees ``cached``."""
        ...


class _Counting:
    """Keeps the requests in flight."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self.in_flight = [0] * len(nodes)
        self._node_of: dict[int, int] = {}

    def take(self, number: int, node: int) -> int:
        """Counts a request."""
        self.in_flight[node] += 1
        self._node_of[number] = node
        return node

    def fewest(self, number: int) -> int:
        """The node with the fewest in flight; among equals another one each time."""
        count = len(self.nodes)
        return min(range(count), key=lambda i: (self.in_flight[i], (i + 7 * number) % count))

    def first_token(self, number: int, now: float) -> None:
        """Not looked at."""

    def end(self, number: int, served: Served, now: float) -> None:
        """Counts the request out."""
        self.in_flight[self._node_of.pop(number)] -= 1


class RoundRobin(_Counting):
    """One after the other."""

    def choose(self, number: int, turn: Turn, now: float) -> int:
        """The next one."""
        return self.take(number, number % len(self.nodes))


class FewestInFlight(_Counting):
    """The least requests in flight."""

    def choose(self, number: int, turn: Turn, now: float) -> int:
        """The least busy one."""
        return self.take(number, self.fewest(number))


class SingleHash(_Counting):
    """One hash of all but the last message, remembered with the node that served it first."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        super().__init__(nodes)
        self._pins: dict[tuple[int, ...], int] = {}

    def choose(self, number: int, turn: Turn, now: float) -> int:
        """The node of an equal prompt, else the least busy one."""
        return self.take(number, self._pins.setdefault(turn.blocks[:-1], self.fewest(number)))


class Oracle(_Counting):
    """Sees every cache and the true backlog, and takes the node that answers first."""

    def choose(self, number: int, turn: Turn, now: float) -> int:
        """The node with the shortest true TTFT."""
        times = [node.ttft_s(turn, now) for node in self.nodes]
        return self.take(number, times.index(min(times)))


SIMPLE: Final = ("round robin", "fewest in flight", "single hash")
PIN: Final = Balancing.PIN.value
PREDICTED: Final = Balancing.PREDICTED_TTFT.value
ORACLE: Final = "oracle"

POLICIES: Final[dict[str, Callable[[Sequence[Node]], Policy]]] = {
    "round robin": RoundRobin,
    "fewest in flight": FewestInFlight,
    "single hash": SingleHash,
    PIN: lambda nodes: CorePolicy(len(nodes), Balancing.PIN),
    PREDICTED: lambda nodes: CorePolicy(len(nodes), Balancing.PREDICTED_TTFT),
    ORACLE: Oracle,
}
