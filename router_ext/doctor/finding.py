"""What a check is, and what it finds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from router_ext.doctor.state import State


class Severity(StrEnum):
    """An error: requests fail, pass unrouted or are counted wrong, or a door stands open. A warning: look at it."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, and the line that mends it."""

    wrong: str
    mend: str


Examine = Callable[[State], Sequence[Finding] | None]
"""What is wrong: nothing when all is well, None when there is nothing to look at, as another check says."""


@dataclass(frozen=True, slots=True)
class Check:
    """One point. ``id`` never changes; ``looks_at`` and ``why`` are sentences; ``mending`` says how to mend it."""

    id: str
    severity: Severity
    looks_at: str
    why: str
    mending: str
    examine: Examine


@dataclass(frozen=True, slots=True)
class Result:
    """What a check came to. ``findings`` None: it had nothing to look at."""

    check: Check
    findings: tuple[Finding, ...] | None

    @property
    def status(self) -> str:
        """``ok``, ``skipped``, or the severity of the check."""
        if self.findings is None:
            return "skipped"
        return self.check.severity.value if self.findings else "ok"
