"""Changes of the configuration for whoever asks: done, told, and answered for in one form."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from pydantic import BaseModel

from router_ext.admin.actor import Actor
from router_ext.admin.audit import Action, Attempt, AuditSink
from router_ext.admin.refusal import RefusedError
from router_ext.admin.shapes.changes import ChangeAnswer
from router_ext.admin.shapes.errors import ProblemShown
from router_ext.config.changes import Changes
from router_ext.config.changes_file import NAME, ChangesFileError
from router_ext.config.problem import ConfigError, Problem
from router_ext.control import Applied, Control, Running

ShownT = TypeVar("ShownT", bound=BaseModel)

_REMOVING: Final = frozenset({Action.REMOVE_BACKEND})


@dataclass(frozen=True, slots=True)
class Wish:
    """One change that somebody asks for."""

    actor: Actor
    action: Action
    target: str
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Desk:
    """Takes wishes. Each ends in an answer or in RefusedError, and in one line of the audit."""

    control: Control
    sink: AuditSink

    async def change(
        self, wish: Wish, edit: Callable[[Changes], Changes], show: Callable[[Running], ShownT | None]
    ) -> ChangeAnswer[ShownT]:
        """A change above the file. ``show`` tells what is of interest before and after. ``edit`` may raise
        RefusedError.
        """
        attempt = Attempt(self.sink, wish.actor, wish.action, wish.target, wish.dry_run)
        try:
            step = await self.control.change(edit, dry_run=wish.dry_run)
        except (RefusedError, ConfigError, OSError, RuntimeError) as error:
            raise _told(attempt, error) from None
        return self._answer(attempt, step, show)

    async def reload(self, wish: Wish, show: Callable[[Running], ShownT | None]) -> ChangeAnswer[ShownT]:
        """The file on disk."""
        attempt = Attempt(self.sink, wish.actor, wish.action, wish.target, wish.dry_run)
        try:
            step = await self.control.reload(dry_run=wish.dry_run)
        except (ConfigError, OSError, RuntimeError) as error:
            raise _told(attempt, error) from None
        return self._answer(attempt, step, show)

    def refuse(self, wish: Wish, error: RefusedError) -> RefusedError:
        """What to raise for a wish that is refused before the configuration is looked at."""
        return _told(Attempt(self.sink, wish.actor, wish.action, wish.target, wish.dry_run), error)

    def _answer(
        self, attempt: Attempt, step: Applied, show: Callable[[Running], ShownT | None]
    ) -> ChangeAnswer[ShownT]:
        before, after = show(step.before), show(step.after)
        changed = _version(step.before) != _version(step.after)
        attempt.succeeded(changed=changed, before=before, after=after)
        warnings = [problem_shown(warning) for warning in step.warnings]
        waiting = [
            ProblemShown(path=name, line=0, message="is in force after a restart only") for name in step.restart_needed
        ]
        return ChangeAnswer(
            changed=changed, dry_run=attempt.dry_run, before=before, after=after, warnings=[*warnings, *waiting]
        )


def problem_shown(problem: Problem) -> ProblemShown:
    """A finding as it is answered."""
    return ProblemShown(path=problem.path, line=problem.line, message=problem.message)


def _version(running: Running) -> tuple[str, Changes]:
    return running.loaded.digest, running.changes


def _told(attempt: Attempt, error: Exception) -> RefusedError:
    refused = _refused(attempt.action, error)
    attempt.refused(refused, error if isinstance(error, (OSError, RuntimeError)) else None)
    return refused


def _refused(action: Action, error: Exception) -> RefusedError:
    if isinstance(error, RefusedError):
        return error
    if not isinstance(error, ConfigError):
        # Of a system's error its fixed words, which name no path of the machine; the audit has all of it.
        cause = f" ({error.strerror})" if isinstance(error, OSError) and error.strerror else ""
        message = f"The change cannot be written or taken over{cause}; nothing has changed."
        return RefusedError(503, "not_applied", message)
    if isinstance(error, ChangesFileError):
        message = "What was changed before cannot be used, so nothing can be changed: see problems."
        problems = [Problem(NAME, 0, problem.message) for problem in error.problems]
        return RefusedError(503, "changes_unusable", message, problems=problems)
    if action in _REMOVING:
        message = "Something still needs it: see problems. Nothing has changed."
        return RefusedError(409, "in_use", message, problems=error.problems)
    message = "The configuration would not be valid: see problems. Nothing has changed."
    return RefusedError(422, "invalid_config", message, problems=error.problems)
