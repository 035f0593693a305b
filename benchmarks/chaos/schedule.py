"""What goes wrong with which backend, and when. Times are shares of the run, so that a short run meets every fault."""

from dataclasses import dataclass
from typing import Final

from router_ext.demo.sim.faults import NO_FAULTS, Faults

BACKENDS: Final = ("a", "b", "c")

FULL_S: Final = 30.0
"""The run for which the times below are written, in seconds."""


@dataclass(frozen=True, slots=True)
class Kill:
    """SIGKILL to a backend's process."""

    backend: str


@dataclass(frozen=True, slots=True)
class Restart:
    """The killed backend comes back, on the same port."""

    backend: str


@dataclass(frozen=True, slots=True)
class Switch:
    """These faults and no others are in force in a backend from now on."""

    backend: str
    faults: Faults


Action = Kill | Restart | Switch


@dataclass(frozen=True, slots=True)
class Step:
    """One action, ``at_s`` seconds after the first request."""

    at_s: float
    action: Action


def steps(seconds: float) -> tuple[Step, ...]:
    """The faults of a run of that length, in order of time.

    The silence of ``c`` is as long as a third of the run: 10 s in a full one.
    """
    scale = seconds / FULL_S
    return (
        Step(5 * scale, Kill("a")),
        Step(12 * scale, Restart("a")),
        # The health page stays good: only requests can tell.
        Step(14 * scale, Switch("b", Faults(status=503))),
        Step(19 * scale, Switch("b", NO_FAULTS)),
        Step(21 * scale, Switch("c", Faults(first_token_delay_s=10 * scale))),
        Step(26 * scale, Switch("c", NO_FAULTS)),
    )


def describe(action: Action) -> str:
    """The action in a few words."""
    match action:
        case Kill(backend):
            return f"{backend} is killed"
        case Restart(backend):
            return f"{backend} is started again"
        case Switch(backend, faults) if faults == NO_FAULTS:
            return f"{backend} answers as usual"
        case Switch(backend, Faults(status=int(status))):
            return f"{backend} answers {status} to every request; its health page stays good"
        case Switch(backend, faults):
            return f"{backend} keeps back its first token for {faults.first_token_delay_s:g} s"
