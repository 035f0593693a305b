"""Every attempt to change something is told, whoever made it and however it ended."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from pydantic import BaseModel

from router_ext.admin.actor import Actor
from router_ext.admin.refusal import RefusedError
from router_ext.config.problem import Problem

MAX_TARGET: Final = 128
"""Characters of a name that are told: one that is refused may be anything."""


class Action(StrEnum):
    """What can be changed; also the names of the routes and the ``action`` label."""

    ADD_BACKEND = "add_backend"
    REMOVE_BACKEND = "remove_backend"
    DRAIN_BACKEND = "drain_backend"
    UNDRAIN_BACKEND = "undrain_backend"
    ADD_RULE = "add_rule"
    REPLACE_RULE = "replace_rule"
    REMOVE_RULE = "remove_rule"
    SET_BUDGET = "set_budget"
    RESET_BUDGET = "reset_budget"
    RELOAD_CONFIG = "reload_config"
    CREATE_SESSION = "create_session"
    DELETE_SESSION = "delete_session"


class Result(StrEnum):
    """How an attempt ended; also the ``result`` label."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    DRY_RUN = "dry_run"
    REFUSED = "refused"
    FAILED = "failed"


class AuditSink(Protocol):
    """Takes what is told, for metrics and logs."""

    def admin_change(self, action: str, result: str, about: Mapping[str, object]) -> None:
        """One attempt. ``about`` holds no credential."""
        ...


@dataclass(frozen=True, slots=True)
class Attempt:
    """``actor`` wants ``action`` done to what is called ``target``."""

    sink: AuditSink
    actor: Actor
    action: Action
    target: str
    dry_run: bool

    def succeeded(self, *, changed: bool, before: BaseModel | None, after: BaseModel | None) -> None:
        """It was done, or would have been."""
        done = Result.CHANGED if changed else Result.UNCHANGED
        self._tell(Result.DRY_RUN if self.dry_run else done, before=_shown(before), after=_shown(after))

    def refused(self, error: RefusedError, cause: Exception | None = None) -> None:
        """It was not done. What was asked for is not told, but what is wrong with it: it may hold a credential.
        ``cause`` is what failed where nothing was wrong.
        """
        result = Result.FAILED if error.status >= 500 else Result.REFUSED
        why = {} if cause is None else {"cause": str(cause)}
        self._tell(result, code=error.code, problems=_lines(error.problems), **why)

    def _tell(self, result: Result, **more: object) -> None:
        target = {"target": self.target[:MAX_TARGET]} if self.target else {}
        about = {"who": self.actor.who, "peer": self.actor.peer, **target, "dry_run": self.dry_run, **more}
        self.sink.admin_change(self.action, result, about)


def _shown(body: BaseModel | None) -> object:
    return None if body is None else body.model_dump(mode="json")


def _lines(problems: Iterable[Problem]) -> list[str]:
    return [": ".join(part for part in (problem.path, problem.message) if part) for problem in problems]
