"""What the changing routes and the views of the engine stand on, in the process that routes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Query, Request

from router_ext.admin.actor import actor_of
from router_ext.admin.audit import Action
from router_ext.admin.desk import Desk, Wish
from router_ext.admin.shapes.errors import ErrorAnswer
from router_ext.admin.targets import Targets
from router_ext.control import Running
from router_ext.engine.pool import Slot
from router_ext.model.snapshot import Snapshot
from router_ext.ports import Clock


@dataclass(frozen=True, slots=True)
class Live:
    """The backends as they are now. ``snapshot`` and ``slots`` are those of ``engine.pool.Pool``."""

    snapshot: Callable[[], Snapshot]
    slots: Callable[[], Mapping[str, Slot]]
    clock: Clock


@dataclass(frozen=True, slots=True)
class Operations:
    """One process."""

    desk: Desk
    live: Live
    targets: Targets

    @property
    def running(self) -> Running:
        """The configuration in force."""
        return self.desk.control.running


Source = Callable[[], Operations]
"""Asked at each request. A supervisor has none: see ``elsewhere``."""

DryRun = Annotated[bool, Query(description="Validate the change as a whole, and change nothing.")]

Responses = dict[int | str, dict[str, Any]]


def elsewhere() -> Any:
    """The source of routes whose requests are answered by another process. It has nothing to give."""
    raise RuntimeError("this path is answered by a worker")


def wish(request: Request, action: Action, target: str, *, dry_run: bool) -> Wish:
    """What a request asks for."""
    return Wish(actor_of(request), action, target, dry_run)


_MEANINGS: Final = {
    400: "The Host header names another machine, or a parameter is malformed.",
    404: "There is no such thing.",
    409: "It exists already, or something else needs it.",
    413: "The body is too large.",
    422: "The request or the resulting configuration is not valid: `problems` says where.",
    503: "It cannot be done now; nothing has changed.",
}


def errors(*statuses: int) -> Responses:
    """The refusals of a route beside those of every route."""
    return {status: {"model": ErrorAnswer, "description": _MEANINGS[status]} for status in statuses}
