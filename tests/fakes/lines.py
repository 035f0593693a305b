"""Preference pairs, and what a writer of lines tells."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from router_ext.dpo.pair import Message, Pair
from router_ext.dpo.writer import Dropped

ASKED: Final[tuple[Message, ...]] = ({"role": "user", "content": "Name a prime."},)

PAIR: Final = Pair(
    prompt=ASKED,
    chosen="7",
    rejected="9",
    timestamp=1_700_000_000.25,
    cheap_backend="small",
    expensive_backend="large",
    reason="schema",
    rule="chat",
)
"""Made on 2023-11-14T22:13:20.250Z."""


def pair(*prompt: Message, **fields: str) -> Pair:
    """``PAIR`` with another prompt or other texts."""
    return replace(PAIR, prompt=prompt or ASKED, **fields)  # type: ignore[arg-type]  # no field but texts is given


def numbered(number: int, size: int = 0) -> bytes:
    """A JSON line of ``size`` bytes without a newline, or as short as it gets: ``{"n":7,"x":"xxx"}`` or ``{"n":7}``."""
    short = b'{"n":%d}' % number
    if size <= len(short):
        return short
    head = b'{"n":%d,"x":"' % number
    return head + b"x" * (size - len(head) - 2) + b'"}'


def files_of(path: Path) -> list[Path]:
    """The full files of ``path`` in the order of their names, then ``path`` itself."""
    full = sorted(path.parent.glob(f"{path.stem}-*"))
    return [*full, *([path] if path.exists() else [])]


def numbers_in(*files: Path) -> list[int]:
    """The numbers of all lines, each of which must be whole JSON with its newline."""
    lines = [line for file in files for line in file.read_bytes().splitlines(keepends=True)]
    assert all(line.endswith(b"\n") for line in lines)
    return [json.loads(line)["n"] for line in lines]


@dataclass(slots=True)
class RecordedWriter:
    """Implements ``LinesTelemetry``."""

    written: int = 0
    unfit: list[str] = field(default_factory=list)
    bugs: list[BaseException] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)

    def lines_written(self, count: int) -> None:
        """Adds up."""
        self.written += count

    def lines_dropped(self, reason: Dropped, count: int) -> None:
        """Adds up by reason."""
        self.dropped[reason.value] = self.dropped.get(reason.value, 0) + count

    def line_unfit(self, reason: str) -> None:
        """One entry."""
        self.unfit.append(reason)

    def making_failed(self, error: BaseException) -> None:
        """One entry."""
        self.bugs.append(error)

    def writer_failing(self, path: Path, reason: Dropped, cause: str) -> None:
        """One entry."""
        self.told.append(f"{path.name} failing: {reason.value} {cause}".rstrip())

    def writer_recovered(self, path: Path, reason: Dropped) -> None:
        """One entry."""
        self.told.append(f"{path.name} recovered: {reason.value}")

    def torn_line_cut(self, path: Path, size_bytes: int) -> None:
        """One entry."""
        self.told.append(f"{path.name} torn: {size_bytes}")
