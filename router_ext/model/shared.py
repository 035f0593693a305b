"""What one router tells the others: which backend's cache holds a prefix now, whose circuit breaker changed, and what
was spent today.

An event of a backend names it, and where that is: routers whose configurations differ do not take one for another. The
fields stand in the order of their declaration on the wire (``shared.wire``): new ones go to the end, with a default.
"""

from datetime import date
from typing import Annotated, Final

from msgspec import Meta, Struct

from router_ext.model.backend import Backend
from router_ext.model.prefix import Boundary, Prompt

FIRST: Final = 24
"""Boundaries kept of a prompt's start: 48 KiB of what conversations share, which is matched to the block."""

LAST: Final = 24
"""Boundaries kept of a prompt's end: the next turn repeats all of them, an edited one most."""

BETWEEN: Final = 16
"""Boundaries kept of what lies between, evenly: a prompt that leaves there is matched a little too short."""

MAX_KEPT: Final = FIRST + BETWEEN + LAST
"""Most boundaries of one event."""

MAX_TOTALS: Final = 100
"""Most services of one event."""

MAX_MICRO_USD: Final = 2**53
"""Most micro-dollars of one total, 9 billion dollars: a float holds each amount up to it."""

Name = Annotated[str, Meta(min_length=1, max_length=512)]
Key = Annotated[bytes, Meta(min_length=16, max_length=16)]
Size = Annotated[int, Meta(ge=0, le=2**40)]
RouterId = Annotated[str, Meta(min_length=1, max_length=64)]
Service = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"\A[\x20-\x7e]+\Z")]
MicroUsd = Annotated[int, Meta(ge=0, le=MAX_MICRO_USD)]


class PrefixServed(Struct, frozen=True, array_like=True, tag="prefix_served"):
    """A backend's cache holds a prompt now. ``model`` is what the backend calls its model; ``boundaries`` are keys and
    sizes as in ``model.prefix.Boundary``, shortest prefix first.
    """

    backend: Name
    endpoint: Name
    model: Name
    boundaries: Annotated[tuple[tuple[Key, Size], ...], Meta(max_length=MAX_KEPT)]

    @property
    def prompt(self) -> Prompt:
        """The prompt as far as it was told."""
        boundaries = tuple([Boundary(key, size) for key, size in self.boundaries])
        return Prompt(boundaries, boundaries[-1].size if boundaries else 0)


class CircuitChanged(Struct, frozen=True, array_like=True, tag="circuit_changed"):
    """A backend's circuit breaker opened or closed."""

    backend: Name
    endpoint: Name
    is_open: bool


class SpendTold(Struct, frozen=True, array_like=True, tag="spend_told"):
    """What a router spent on a day so far, by service. Whoever knows it tells it, and an event that comes late says
    nothing new. ``router`` is a process, ``day`` the calendar day of the time zone that the teller is configured with.
    """

    router: RouterId
    day: date
    totals: Annotated[tuple[tuple[Service, MicroUsd], ...], Meta(max_length=MAX_TOTALS)]


BackendEvent = PrefixServed | CircuitChanged
SharedEvent = BackendEvent | SpendTold


def prefix_served(backend: Backend, prompt: Prompt) -> PrefixServed:
    """The event for a prompt that ``backend`` served, cut to ``MAX_KEPT`` boundaries."""
    boundaries = tuple([(boundary.key, boundary.size) for boundary in _kept(prompt.boundaries)])
    return PrefixServed(backend.name, str(backend.endpoint), backend.model_name, boundaries)


def _kept(boundaries: tuple[Boundary, ...]) -> tuple[Boundary, ...]:
    if len(boundaries) <= MAX_KEPT:
        return boundaries
    between = boundaries[FIRST:-LAST]
    step = -(-len(between) // BETWEEN)
    return (*boundaries[:FIRST], *between[::step], *boundaries[-LAST:])
