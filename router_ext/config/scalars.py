"""Readers of single values. Each says what it expects; a value that does not fit is recorded, never guessed at."""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final, Generic, TypeVar
from zoneinfo import ZoneInfo, available_timezones

from router_ext.config import units
from router_ext.config.document import Node, Scalar
from router_ext.config.reading import Reading
from router_ext.config.wording import quoted, suggestion

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

INT_MAX: Final = 2**31 - 1
_YEAR_S: Final = 31_536_000.0
_MIN_DURATION_S: Final = 0.001
_LOCAL_PATH_CHARS: Final = 4096

_PRINTABLE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_WORD: Final = re.compile(r"[\x21-\x7e]+")


class UnfitError(Exception):
    """Raised by a parser for a value that does not fit; the message, if any, replaces the standard one."""


@dataclass(frozen=True, slots=True)
class ScalarReader(Generic[T]):
    """Reads one value.

    ``expects`` completes "expected …" and documents the value. ``parse`` raises UnfitError. ``finish`` may record or
    complete the parsed value. A ``private`` value is never quoted.
    """

    expects: str
    parse: Callable[[Scalar], T]
    finish: Callable[[T, Scalar, Reading], T] | None = None
    private: bool = False

    def read(self, node: Node, reading: Reading) -> T | None:
        """The value, or None after recording a problem."""
        scalar = reading.scalar(node, self.expects)
        if scalar is None:
            return None
        try:
            value = self.parse(scalar)
        except UnfitError as unfit:
            reading.problem(node, str(unfit) or f"expected {self.expects}{self._got(scalar)}")
            return None
        return self.finish(value, scalar, reading) if self.finish else value

    def finished(self, finish: Callable[[T, Scalar, Reading], T]) -> "ScalarReader[T]":
        """The same reader with another last step."""
        return replace(self, finish=finish)

    def _got(self, scalar: Scalar) -> str:
        if scalar.env:
            return f" in environment variable {scalar.env}"
        if scalar.is_null:
            return ", got nothing"
        if self.private:
            return ""
        return f", got {quoted(scalar.text)}" if isinstance(scalar.value, str) else f", got {scalar.text}"


def text_of(scalar: Scalar) -> str:
    """The text of a value that is text. Raises UnfitError for numbers, flags and nothing; variables are always text."""
    if scalar.env or isinstance(scalar.value, str):
        return scalar.text
    raise UnfitError("" if scalar.is_null else "expected text, got a number or a flag: put it in quotes")


def text(expects: str, pattern: re.Pattern[str], max_chars: int, min_chars: int = 1) -> ScalarReader[str]:
    """Text of ``min_chars..max_chars`` characters that ``pattern`` matches as a whole ("" passes when allowed)."""

    def parse(scalar: Scalar) -> str:
        value = text_of(scalar)
        if not min_chars <= len(value) <= max_chars or (value and not pattern.fullmatch(value)):
            raise UnfitError
        return value

    return ScalarReader(expects, parse)


def printable(min_chars: int, max_chars: int) -> ScalarReader[str]:
    """Printable ASCII without a space at either end."""
    expects = f"{min_chars} to {max_chars} printable ASCII characters without a space at either end"
    return text(expects, _PRINTABLE, max_chars, min_chars)


def word(max_chars: int) -> ScalarReader[str]:
    """Printable ASCII without spaces."""
    return text(f"1 to {max_chars} printable ASCII characters without spaces", _WORD, max_chars)


def boolean() -> ScalarReader[bool]:
    """``true`` or ``false``."""

    def parse(scalar: Scalar) -> bool:
        if isinstance(scalar.value, bool):
            return scalar.value
        raise UnfitError

    return ScalarReader("true or false", parse)


def integer(low: int, high: int = INT_MAX) -> ScalarReader[int]:
    """A whole number, both bounds included; a flag is none."""

    def parse(scalar: Scalar) -> int:
        value = scalar.value
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise UnfitError
        return value

    return ScalarReader(f"a whole number from {low} to {high}", parse)


def number(low: float, high: float, *, above: bool = False) -> ScalarReader[float]:
    """A finite number, both bounds included; ``above`` excludes ``low``."""

    def parse(scalar: Scalar) -> float:
        value = _finite(scalar)
        if value > high or value < low or (above and value == low):
            raise UnfitError
        return value

    bounds = f"above {_plain(low)} and up to {_plain(high)}" if above else f"from {_plain(low)} to {_plain(high)}"
    return ScalarReader(f"a number {bounds}", parse)


def _finite(scalar: Scalar) -> float:
    value = scalar.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UnfitError
    return float(value)


def _plain(bound: float) -> str:
    return f"{bound:.0f}" if bound == int(bound) else f"{bound:g}"


def duration(high_s: float = _YEAR_S) -> ScalarReader[float]:
    """Seconds, from 1 ms to ``high_s``: a number of seconds or text with units."""

    def parse(scalar: Scalar) -> float:
        with_unit = units.duration_s(scalar.value) if isinstance(scalar.value, str) else None
        value = _finite(scalar) if with_unit is None else with_unit
        if not _MIN_DURATION_S <= value <= high_s:
            raise UnfitError
        return value

    return ScalarReader(f"a duration like 30s, 5m, 1h30m or 250ms, from 1ms to {_plain(high_s)}s", parse)


def size(high: int) -> ScalarReader[int]:
    """Bytes, from 1 to ``high``: a whole number or text with a unit."""

    def parse(scalar: Scalar) -> int:
        value = units.size_bytes(scalar.value) if isinstance(scalar.value, str) else scalar.value
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= high:
            raise UnfitError
        return value

    return ScalarReader(f"a size like 32MiB, 32MB or 1k, from 1 to {high} bytes", parse)


def choice(options: Iterable[str]) -> ScalarReader[str]:
    """One of ``options``, exactly. "" may be an option and is not offered in messages."""
    known = tuple(options)
    offered = tuple(option for option in known if option)
    expects = f"one of {', '.join(offered)}"

    def parse(scalar: Scalar) -> str:
        value = text_of(scalar)
        if value in known:
            return value
        got = f"the value of environment variable {scalar.env}" if scalar.env else quoted(value)
        raise UnfitError(f"expected {expects}, got {got}{_close(value, offered)}")

    return ScalarReader(expects, parse)


def member(kind: type[E]) -> ScalarReader[E]:
    """A member of ``kind``, by its value."""
    by_value = choice(option.value for option in kind)
    return ScalarReader(by_value.expects, lambda scalar: kind(by_value.parse(scalar)))


def time_zone() -> ScalarReader[ZoneInfo]:
    """A name of the IANA time zone database, as it is written there."""
    expects = "an IANA time zone like UTC or Europe/Berlin"

    def parse(scalar: Scalar) -> ZoneInfo:
        value, known = text_of(scalar), available_timezones()
        if value in known:
            return ZoneInfo(value)
        got = f"the value of environment variable {scalar.env}" if scalar.env else quoted(value)
        raise UnfitError(f"expected {expects}, got {got}{_close(value, tuple(known))}")

    return ScalarReader(expects, parse)


def local_path() -> ScalarReader[Path]:
    """A file or folder; a relative one is below the configuration file's folder."""

    def parse(scalar: Scalar) -> Path:
        value = text_of(scalar)
        if not value or len(value) > _LOCAL_PATH_CHARS or not value.isprintable():
            raise UnfitError
        return Path(value)

    return ScalarReader("a path", parse, finish=lambda path, _scalar, reading: reading.folder / path)


def _close(value: str, offered: tuple[str, ...]) -> str:
    hint = suggestion(value, offered)
    return hint if "did you mean" in hint else ""
