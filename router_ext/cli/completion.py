"""``router-ext completion``: what a shell needs to complete the command line."""

import argparse
from pathlib import Path
from typing import Final

import shtab

from router_ext.cli.catalogue import COMMANDS
from router_ext.cli.parser import arguments, build_parser, leaves

SHELLS: Final = ("bash", "zsh", "fish", "tcsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The shell."""
    parser.add_argument("shell", choices=SHELLS, help="which shell's script to print")


def main(args: argparse.Namespace) -> int:
    """Prints the script for every command."""
    whole = build_parser(COMMANDS)
    for _, parser in leaves(whole):
        _complete_paths(parser)
    print(shtab.complete(whole, args.shell))
    return 0


def _complete_paths(parser: argparse.ArgumentParser) -> None:
    for action in arguments(parser):
        if action.type is Path:
            action.complete = shtab.DIRECTORY if action.metavar == "DIR" else shtab.FILE  # type: ignore[attr-defined]
