"""The words that a tool is made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from string import Formatter
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

Json = dict[str, Any]


class Effect(Enum):
    """What a tool does to the router, as hints say it: read-only, destructive, idempotent.

    Whatever may move or stop live traffic, or what may be spent, counts as destructive, also when it only adds.
    """

    READS = (True, False, True)
    ADDS = (False, False, False)
    CHANGES = (False, True, True)

    @property
    def read_only(self) -> bool:
        """It changes nothing."""
        return self.value[0]

    @property
    def destructive(self) -> bool:
        """Somebody should be asked before."""
        return self.value[1]

    @property
    def idempotent(self) -> bool:
        """A second call with the same arguments changes nothing more."""
        return self.value[2]


@dataclass(frozen=True, slots=True)
class Request:
    """One request of the admin API: see ``port.Admin.call``."""

    method: str
    path: str
    query: Mapping[str, str]
    body: Json | None


@dataclass(frozen=True, slots=True)
class Route:
    """A route of the API. Arguments named in ``path`` go there, those in ``query`` behind it, all others in a body."""

    method: str
    path: str
    query: tuple[str, ...] = ()

    def request(self, arguments: Json) -> Request:
        """The request for valid arguments."""
        places = {name for _, name, _, _ in Formatter().parse(self.path) if name}
        path = self.path.format(**{name: quote(str(arguments[name]), safe="") for name in places})
        query = {name: _text(arguments[name]) for name in self.query if arguments.get(name) is not None}
        body = {name: value for name, value in arguments.items() if name not in places and name not in self.query}
        return Request(self.method, path, query, body or None)


@dataclass(frozen=True, slots=True)
class Switch:
    """A choice between two routes by an argument that is a boolean, and goes no further."""

    argument: str
    on: Route
    off: Route


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool. ``takes`` and ``gives`` are the bodies of the admin API, ``see`` names the tool that lists the names
    that this one takes, "" for none. ``open_world`` is true where it makes the router reach something outside.
    """

    name: str
    title: str
    description: str
    effect: Effect
    takes: type[BaseModel]
    gives: type[BaseModel]
    route: Route | Switch
    see: str = ""
    open_world: bool = False

    @property
    def routes(self) -> tuple[Route, ...]:
        """Every route that it may ask."""
        return (self.route.on, self.route.off) if isinstance(self.route, Switch) else (self.route,)

    def request(self, arguments: Json) -> Request:
        """What to ask the admin API for valid arguments."""
        if isinstance(self.route, Route):
            return self.route.request(arguments)
        chosen = self.route.on if arguments.get(self.route.argument, True) else self.route.off
        return chosen.request({name: value for name, value in arguments.items() if name != self.route.argument})


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
