"""``router-ext dpo``: looks at the files of preference pairs, and makes training data of them."""

import argparse
import contextlib
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

from router_ext.cli.configuration import add_json_argument
from router_ext.cli.failure import EXIT_BAD_CALL, EXIT_WRONG, CommandError, print_json
from router_ext.dpo.check import read_line
from router_ext.dpo.pair import OPTIONAL_FIELDS, Pair
from router_ext.dpo.trl import optional_fields, trl_line

PROBLEMS_SHOWN: Final = 20
"""Of each file, beside their number."""


@dataclass(slots=True)
class Survey:
    """What a file holds. ``problems`` are line numbers and what is wrong. ``leaders`` are the places of the first lines
    that have each of the optional fields, by their byte, in the file's order.
    """

    path: Path
    by_reason: Counter[str] = field(default_factory=Counter)
    by_rule: Counter[str] = field(default_factory=Counter)
    problems: list[tuple[int, str]] = field(default_factory=list)
    fields: set[str] = field(default_factory=set)
    leaders: list[int] = field(default_factory=list)
    size: int = 0

    @property
    def pairs(self) -> int:
        """How many lines are good."""
        return self.by_reason.total()

    def add(self, pair: Pair) -> None:
        """Counts the pair of the line that begins at byte ``size``."""
        self.by_reason[pair.reason] += 1
        self.by_rule[pair.rule] += 1
        if not optional_fields(pair) <= self.fields:
            self.fields |= optional_fields(pair)
            self.leaders.append(self.size)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``check`` and ``convert``."""
    commands = parser.add_subparsers(dest="dpo_command", required=True, metavar="COMMAND")
    text = "validate files and count their pairs"
    check_parser = commands.add_parser("check", help=text, description=text.capitalize() + ".")
    check_parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="pairs, as JSON lines")
    add_json_argument(check_parser, "print one JSON object: pairs, wrong, by_reason, by_rule, files")
    check_parser.set_defaults(run_dpo=check)
    text = "write a file in the format of a trainer"
    convert_parser = commands.add_parser("convert", help=text, description=text.capitalize() + ".")
    convert_parser.add_argument("file", type=Path, metavar="FILE", help="pairs, as JSON lines")
    convert_parser.add_argument("--to", required=True, choices=("trl",), help="trl: conversational, explicit prompt")
    convert_parser.add_argument("--out", type=Path, metavar="FILE", help="in place of standard output")
    add_json_argument(convert_parser, "print one JSON object on standard error: file, out, pairs, wrong, problems")
    convert_parser.set_defaults(run_dpo=convert)


def main(args: argparse.Namespace) -> int:
    """0 when every line is good, 1 with the numbers of those that are not. Raises CommandError, with exit code 2, when
    a file cannot be read or written.
    """
    try:
        return int(args.run_dpo(args))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CommandError(str(error), EXIT_BAD_CALL, "unreadable") from None


def check(args: argparse.Namespace) -> int:
    """Counts by reason and rule."""
    surveys = [survey(path) for path in args.files]
    if args.json:
        print_json(_report(surveys))
    else:
        _print_report(surveys)
    return EXIT_WRONG if any(found.problems for found in surveys) else 0


def convert(args: argparse.Namespace) -> int:
    """Writes all of a file, or nothing when a line of it is wrong."""
    found = survey(args.file)
    if not found.problems:
        _write(args.out, _converted(found))
    if args.json:
        out = None if args.out is None else str(args.out)
        print_json({**_file_report(found), "out": out}, sys.stderr)
    else:
        _print_problems(found)
    return EXIT_WRONG if found.problems else 0


def survey(path: Path) -> Survey:
    """Reads every line. Raises OSError."""
    found = Survey(path)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            pair = read_line(line)
            if isinstance(pair, Pair):
                found.add(pair)
            else:
                found.problems.append((number, pair))
            found.size += len(line)
    return found


def _converted(found: Survey) -> Iterator[bytes]:
    """The leaders, then the other lines. What was added to the file since it was surveyed is left out."""
    fields = [name for name in OPTIONAL_FIELDS if name in found.fields]
    with found.path.open("rb") as file:
        for at in found.leaders:
            file.seek(at)
            yield _converted_line(file.readline(), fields)
        for at, line in _lines(file, found.size):
            if at not in found.leaders:
                yield _converted_line(line, fields)


def _lines(file: BinaryIO, end: int) -> Iterator[tuple[int, bytes]]:
    """The lines before byte ``end`` with their places."""
    at = file.seek(0)
    while at < end and (line := file.readline()):
        yield at, line
        at += len(line)


def _converted_line(line: bytes, fields: Sequence[str]) -> bytes:
    pair = read_line(line)
    if isinstance(pair, str):
        raise OSError(f"the file changed while it was read: {pair}")
    return trl_line(pair, fields) + b"\n"


def _write(target: Path | None, lines: Iterator[bytes]) -> None:
    if target is not None:
        _replace(target, lines)
    else:
        sys.stdout.buffer.writelines(lines)
        sys.stdout.buffer.flush()


def _replace(target: Path, lines: Iterator[bytes]) -> None:
    """Writes beside ``target`` and renames: whoever looks finds the old file or the whole new one, mode 0600."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _report(surveys: Sequence[Survey]) -> dict[str, object]:
    return {
        "pairs": sum(found.pairs for found in surveys),
        "wrong": sum(len(found.problems) for found in surveys),
        "by_reason": dict(_total(found.by_reason for found in surveys).most_common()),
        "by_rule": dict(_total(found.by_rule for found in surveys).most_common()),
        "files": [_file_report(found) for found in surveys],
    }


def _file_report(found: Survey) -> dict[str, object]:
    problems = [{"line": line, "problem": problem} for line, problem in found.problems[:PROBLEMS_SHOWN]]
    return {"file": str(found.path), "pairs": found.pairs, "wrong": len(found.problems), "problems": problems}


def _print_report(surveys: Sequence[Survey]) -> None:
    for found in surveys:
        print(f"{found.path}: {found.pairs} pairs, {len(found.problems)} wrong lines")
        _print_problems(found)
    for title, counts in (
        ("reason", _total(found.by_reason for found in surveys)),
        ("rule", _total(found.by_rule for found in surveys)),
    ):
        for value, count in counts.most_common():
            print(f"{title} {value}: {count}")


def _print_problems(found: Survey) -> None:
    for line, problem in found.problems[:PROBLEMS_SHOWN]:
        print(f"{found.path}:{line}: {problem}", file=sys.stderr)
    more = len(found.problems) - PROBLEMS_SHOWN
    if more > 0:
        print(f"{found.path}: {more} more", file=sys.stderr)


def _total(counts: Iterator[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for some in counts:
        total.update(some)
    return total
