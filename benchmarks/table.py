"""Figures as a table, with the goals that some of them have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """A figure, what it says and the most that it should be; None: no goal."""

    name: str
    text: str
    most: float | None = None


def lines(rows: Sequence[Row], figures: Mapping[str, Any]) -> list[str]:
    """A line for each row whose figure there is: name, value, goal and whether it is met."""
    width = max(len(row.text) for row in rows)
    return [_line(row, figures[row.name], width) for row in rows if row.name in figures]


def _line(row: Row, value: float, width: int) -> str:
    if row.most is None:
        return f"{row.text:<{width}}  {value:>10}"
    return f"{row.text:<{width}}  {value:>10}  goal <= {row.most:g}  {'met' if value <= row.most else 'MISSED'}"
