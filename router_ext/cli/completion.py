"""``router-ext completion``: what a shell needs to complete the command line."""

import argparse
from typing import Final

import shtab

SHELLS: Final = ("bash", "zsh", "fish", "tcsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The shell."""
    parser.add_argument("shell", choices=SHELLS, help="which shell's script to print")


def main(args: argparse.Namespace, whole: argparse.ArgumentParser) -> int:
    """Prints the script for the commands of ``whole``."""
    print(shtab.complete(whole, args.shell))
    return 0
