"""The whole command line as one parser, and its parts."""

import argparse
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from router_ext.cli.exit_codes import epilog
from router_ext.cli.failure import CommandParser
from router_ext.version import __version__

PROGRAM = "router-ext"


class CommandModule(Protocol):
    """What the module of a command holds."""

    def add_arguments(self, parser: argparse.ArgumentParser, /) -> None:
        """Adds the command's arguments."""
        ...

    def main(self, args: argparse.Namespace, /) -> int:
        """Runs the command and returns its exit code."""
        ...


@dataclass(frozen=True, slots=True)
class Command:
    """A command's name, one line about it, and its module, which is imported when it is asked for."""

    name: str
    text: str
    module: str

    def load(self) -> CommandModule:
        """The module."""
        return cast(CommandModule, import_module(self.module))


def build_parser(catalogue: Sequence[Command], asked: Container[str] | None = None) -> CommandParser:
    """A parser whose result has the command's function as ``run``.

    Of commands whose name is not among the words of ``asked`` it knows the name only: importing them all takes longer
    than most of them run. None: it knows everything.
    """
    parser = CommandParser(prog=PROGRAM, description="LLM router for Envoy")
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command in catalogue:
        description = command.text[0].upper() + command.text[1:] + "."
        below = commands.add_parser(command.name, help=command.text, description=description)
        if asked is None or command.name in asked:
            _fill(below, command.load())
    return parser


def _fill(parser: argparse.ArgumentParser, module: CommandModule) -> None:
    module.add_arguments(parser)
    parser.set_defaults(run=module.main)
    for name, leaf in leaves(parser):
        _finish(name, leaf)


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
    """The exit codes stand below what the command itself says there."""
    parser.epilog = "\n\n".join(text for text in (parser.epilog, epilog(name)) if text)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
