"""The whole command line as one parser, and its parts."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import shtab

from router_ext.cli.exit_codes import epilog
from router_ext.cli.failure import CommandParser
from router_ext.version import __version__

PROGRAM = "router-ext"

Command = tuple[str, Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int]]
"""Name and one line about it, what adds its arguments, and what runs it and returns the exit code."""


def build_parser(catalogue: Sequence[Command]) -> CommandParser:
    """A parser whose result has the command's function as ``run``."""
    parser = CommandParser(prog=PROGRAM, description="LLM router for Envoy")
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for title, add_arguments, run in catalogue:
        name, _, text = title.partition(" ")
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        add_arguments(command)
        command.set_defaults(run=run)
    for name, leaf in leaves(parser):
        _finish(name, leaf)
    return parser


def leaves(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """The parsers of the commands that do something, by name: ``serve``, ``dpo check``."""
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not groups:
        yield parser.prog.removeprefix(PROGRAM).strip(), parser
    for group in groups:
        for below in group.choices.values():
            yield from leaves(below)


def arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """What a command takes, without ``--help``."""
    return (action for action in parser._actions if not isinstance(action, argparse._HelpAction))


def _finish(name: str, parser: argparse.ArgumentParser) -> None:
    """Exit codes below what the command itself says there, and file names for the shell's completion."""
    parser.epilog = "\n\n".join(text for text in (parser.epilog, epilog(name)) if text)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    for action in arguments(parser):
        if action.type is Path and not hasattr(action, "complete"):
            action.complete = shtab.DIRECTORY if action.metavar == "DIR" else shtab.FILE  # type: ignore[attr-defined]
