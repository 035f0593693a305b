"""What calls cost, summed up: one row for each day, service, backend, model and kind of call."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Final

from router_ext.model.decision import Decision
from router_ext.model.outcome import Usage

MAX_COUNT: Final = 2**53
"""Most that a number of a row says: a float, which JSON has, holds each whole number up to it."""


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """What a row is about. ``model`` is the name that was sent to the backend, ``kind`` one of ``model.money``.

    ``day`` is a calendar day of the configured time zone; ``service`` is one that the configuration names, or
    ``other``: clients can add no rows.
    """

    day: date
    service: str
    backend: str
    model: str
    kind: str


def key_of(day: date, service: str, decision: Decision, kind: str) -> Key:
    """The row of a call: that of the backend and the model that served it, whatever the client asked for."""
    return Key(day, service, decision.backend, decision.upstream_model, kind)


@dataclass(frozen=True, slots=True)
class Row:
    """Sums, each 0 to ``MAX_COUNT``. ``estimated_calls`` are those of ``calls`` whose tokens no engine told;
    ``cached_tokens`` are part of ``prompt_tokens``.
    """

    key: Key
    calls: int
    estimated_calls: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    micro_usd: int

    def plus(self, other: "Row") -> "Row":
        """Both together. ``other`` has the same key."""
        return Row(
            self.key,
            min(MAX_COUNT, self.calls + other.calls),
            min(MAX_COUNT, self.estimated_calls + other.estimated_calls),
            min(MAX_COUNT, self.prompt_tokens + other.prompt_tokens),
            min(MAX_COUNT, self.cached_tokens + other.cached_tokens),
            min(MAX_COUNT, self.completion_tokens + other.completion_tokens),
            min(MAX_COUNT, self.micro_usd + other.micro_usd),
        )


@dataclass(frozen=True, slots=True)
class Part:
    """What the process ``router`` booked of a row. Its numbers only grow: of two, the one with more calls is newer."""

    router: str
    row: Row


def united(parts: Iterable[Part]) -> list[Row]:
    """The rows of all processes together, in the order of the keys. The same part may come from several sources: the
    newest of it counts.
    """
    newest: dict[tuple[str, Key], Row] = {}
    for part in parts:
        known = newest.get((part.router, part.row.key))
        if known is None or known.calls < part.row.calls:
            newest[part.router, part.row.key] = part.row
    return summed(newest.values())


def row_of(key: Key, usage: Usage, micro_usd: int, *, estimated: bool) -> Row:
    """The row of one call. Engines report what they like: counts are brought into the range of a row, and there are no
    more cached tokens than the prompt has.
    """
    prompt = _count(usage.prompt_tokens)
    cached = min(prompt, _count(usage.cached_tokens or 0))
    return Row(key, 1, int(estimated), prompt, cached, _count(usage.completion_tokens), _count(micro_usd))


def summed(rows: Iterable[Row]) -> list[Row]:
    """One row for each key, in the order of the keys."""
    sums: dict[Key, Row] = {}
    for row in rows:
        known = sums.get(row.key)
        sums[row.key] = row if known is None else known.plus(row)
    return sorted(sums.values(), key=lambda row: row.key)


def _count(reported: int) -> int:
    return min(MAX_COUNT, max(0, reported))
