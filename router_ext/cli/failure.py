"""Why a command cannot do what it was asked to, for people and, with ``--json``, for programs.

Results go to standard output, errors to standard error: with ``--json`` as one object,
``{"error": {"message", "code", "problems": [{"path", "line", "message"}]}}``.
"""

import argparse
import json
import sys
from collections.abc import Iterable
from typing import Final, NoReturn, TextIO

from router_ext.config.problem import ConfigError, Problem

EXIT_WRONG: Final = 1
EXIT_BAD_CALL: Final = 2


class CommandError(Exception):
    """Ends a command. ``message`` is one line for its user, ``code`` one word for programs."""

    def __init__(self, message: str, exit_code: int = EXIT_WRONG, code: str = "failed") -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.code = code


class BadCallError(Exception):
    """Arguments that ``parser`` does not take; ``str`` says why."""

    def __init__(self, parser: argparse.ArgumentParser, message: str) -> None:
        super().__init__(message)
        self.parser = parser


class CommandParser(argparse.ArgumentParser):
    """A parser that raises BadCallError where others print and exit. Its subparsers are of the same kind."""

    def error(self, message: str) -> NoReturn:
        """Raises BadCallError."""
        raise BadCallError(self, message)


def report(error: CommandError | ConfigError | OSError, as_json: bool) -> int:
    """Prints why a command ended, and returns its exit code."""
    exit_code, code = _codes(error)
    if as_json:
        problems = error.problems if isinstance(error, ConfigError) else ()
        _print_json(str(error), code, problems)
    else:
        prefix = "" if isinstance(error, ConfigError) else "router-ext: "
        print(f"{prefix}{error}", file=sys.stderr)
    return exit_code


def report_bad_call(error: BadCallError, as_json: bool) -> int:
    """Prints what is wrong with the arguments, after the usage unless it is for programs. Returns the exit code."""
    if as_json:
        _print_json(str(error), "bad_call", ())
    else:
        error.parser.print_usage(sys.stderr)
        print(f"{error.parser.prog}: error: {error}", file=sys.stderr)
    return EXIT_BAD_CALL


def problem_objects(problems: Iterable[Problem]) -> list[dict[str, object]]:
    """Problems for programs: ``path`` is "" for the whole file, ``line`` null where there is none."""
    return [{"path": found.path, "line": found.line or None, "message": found.message} for found in problems]


def print_json(value: object, file: TextIO | None = None) -> None:
    """One line of JSON, on standard output unless there is a ``file``; in ASCII, so any file name can stand in it."""
    print(json.dumps(value), file=file)


def _codes(error: CommandError | ConfigError | OSError) -> tuple[int, str]:
    match error:
        case CommandError():
            return error.exit_code, error.code
        case ConfigError():
            return EXIT_BAD_CALL, "bad_configuration"
        case _:
            return EXIT_WRONG, "failed"


def _print_json(message: str, code: str, problems: Iterable[Problem]) -> None:
    error = {"message": message, "code": code, "problems": problem_objects(problems)}
    print_json({"error": error}, sys.stderr)
