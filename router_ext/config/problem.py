"""What is wrong, or doubtful, in a configuration: where it stands and a sentence about it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

ADMIN_API: Final = "admin API "
"""How the paths of what came by the admin API begin."""

_OUTSIDE: Final = ("env ", "option ", ADMIN_API)


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding. ``path`` is like ``backends[0].url`` ("" is the whole file), ``line`` starts at 1 (0: no line).

    ``message`` is a single printable line and never holds a credential.
    """

    path: str
    line: int
    message: str

    def located(self, source: str) -> str:
        """``source:line: path: message`` without the parts that are not known. What the paths ``env NAME``,
        ``option --NAME`` and ``admin API NAME`` mean stands outside the source, which is left out.
        """
        place = f"{source}:{self.line}" if self.line else source
        outside = self.path.startswith(_OUTSIDE)
        parts = (self.path, self.message) if outside else (place, self.path, self.message)
        return ": ".join(part for part in parts if part)


class ConfigError(Exception):
    """A configuration that cannot be used. ``problems`` holds all that was found, sorted by line.

    ``str`` gives one problem a line, each with its place in ``source``.
    """

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems = tuple(sorted(problems, key=lambda problem: problem.line))
        super().__init__(source, self.problems)

    def __str__(self) -> str:
        return "\n".join(problem.located(self.source) for problem in self.problems)
