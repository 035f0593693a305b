"""What the admin API needs of the owner of the running configuration, as Protocols; ``router_ext.control`` is it."""

from collections.abc import Callable
from typing import Protocol

from router_ext.config.changes import Changes
from router_ext.config.loader import LoadedConfig
from router_ext.config.problem import Problem


class Refusal(Protocol):
    """Why something on disk is not in force."""

    @property
    def message(self) -> str:
        """Every problem, one a line."""
        ...

    @property
    def at(self) -> float:
        """Wall time in seconds."""
        ...


class Running(Protocol):
    """A configuration in force since ``loaded_at`` (wall time in seconds), whatever is on disk by now."""

    @property
    def loaded(self) -> LoadedConfig:
        """The whole of it."""
        ...

    @property
    def changes(self) -> Changes:
        """What stands above its file."""
        ...

    @property
    def loaded_at(self) -> float:
        """When it was taken over."""
        ...

    @property
    def refused(self) -> Refusal | None:
        """Why the file on disk is not in force; None where it is."""
        ...

    @property
    def changes_refused(self) -> Refusal | None:
        """The same of changes that another process wrote."""
        ...


class Step(Protocol):
    """From one configuration to another; of a dry run, as it would have been."""

    @property
    def before(self) -> Running:
        """As it was."""
        ...

    @property
    def after(self) -> Running:
        """As it is."""
        ...

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What is doubtful since then."""
        ...

    @property
    def restart_needed(self) -> tuple[str, ...]:
        """Settings that wait for a restart."""
        ...


class Control(Protocol):
    """Each change is validated as a whole, and everything stays as it was when it raises."""

    @property
    def running(self) -> Running:
        """What is in force now."""
        ...

    async def change(self, edit: Callable[[Changes], Changes], *, dry_run: bool = False) -> Step:
        """Puts other changes above the file. Raises ConfigError, OSError, RuntimeError, and what ``edit`` raises."""
        ...

    async def reload(self, *, dry_run: bool = False) -> Step:
        """Takes over the file on disk. Raises ConfigError, OSError, RuntimeError."""
        ...

    async def reread_changes(self) -> None:
        """Takes over changes that another process wrote."""
        ...
