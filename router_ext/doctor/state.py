"""Everything that the checks look at, read at one time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from router_ext.config.sections import RouterConfig
from router_ext.doctor.wiring import HttpFilter, HttpListener, Wiring


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A page that did not come, or that says something else. ``reason`` is fit to be shown."""

    url: str
    reason: str


Counts = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Counters:
    """Figures by name, read twice with ``apart_s`` seconds between; without a second reading both are the same."""

    before: Counts
    after: Counts
    apart_s: float

    def total(self, name: str) -> float:
        """The latest figure, 0 when there is none."""
        return self.after.get(name, 0.0)

    def grown(self, name: str) -> float:
        """By how much it grew between the readings, not below 0."""
        return max(0.0, self.total(name) - self.before.get(name, 0.0))

    def ending(self, suffix: str) -> tuple[str, ...]:
        """The names that end in ``suffix``, sorted."""
        return tuple(sorted(name for name in self.after if name.endswith(suffix)))


@dataclass(frozen=True, slots=True)
class Host:
    """One endpoint of a cluster as Envoy sees it."""

    address: str
    healthy: bool


@dataclass(frozen=True, slots=True)
class EnvoyState:
    """A running Envoy. ``ahead_s`` is its clock against ours, None when it does not tell the time; ``hosts`` are by
    cluster; ``state`` is LIVE while it serves.
    """

    wiring: Wiring
    hosts: Mapping[str, Sequence[Host]]
    counters: Counters
    state: str
    version: str
    ahead_s: float | None


@dataclass(frozen=True, slots=True)
class RunningBackend:
    """A backend as the router tells of it. ``health`` is ``down`` when it is not used."""

    name: str
    health: str
    circuit_open: bool


@dataclass(frozen=True, slots=True)
class RouterState:
    """A running router. ``counters`` are its metrics, the sums over their labels."""

    version: str
    ready: bool
    backends: tuple[RunningBackend, ...]
    counters: Counters
    ahead_s: float | None


@dataclass(frozen=True, slots=True)
class State:
    """``expected`` is what would be rendered for ``config``; ``version`` is that of this program."""

    config: RouterConfig
    expected: Wiring
    envoy: EnvoyState | Unreadable
    router: RouterState | Unreadable
    version: str

    @property
    def running(self) -> EnvoyState | None:
        """Envoy's state, None when there is none to be had."""
        return None if isinstance(self.envoy, Unreadable) else self.envoy

    @property
    def answering(self) -> RouterState | None:
        """The router's state, None when there is none to be had."""
        return None if isinstance(self.router, Unreadable) else self.router

    @property
    def ingress(self) -> tuple[HttpListener, ...]:
        """The running listeners for clients: those on ``server.port``, else those that ask the router."""
        if self.running is None:
            return ()
        wiring = self.running.wiring
        asking = (one for one in wiring.listeners if one.processors)
        return wiring.on_port(self.config.server.port) or tuple(asking)

    @property
    def processors(self) -> tuple[HttpFilter, ...]:
        """The running ext_proc filters that ask the router."""
        return tuple(one for listener in self.ingress for one in listener.processors)

    @property
    def expected_ingress(self) -> HttpListener:
        """The listener for clients as it would be rendered."""
        return self.expected.on_port(self.config.server.port)[0]

    @property
    def expected_processor(self) -> HttpFilter:
        """The ext_proc filter as it would be rendered."""
        return self.expected_ingress.processors[0]
