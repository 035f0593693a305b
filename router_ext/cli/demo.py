"""``router-ext demo``, whose errors end it as those of every command do."""

import argparse

from router_ext.cli.failure import CommandError
from router_ext.demo import command
from router_ext.demo.command import add_arguments
from router_ext.demo.stack import DemoError

__all__ = ["add_arguments", "main"]


def main(args: argparse.Namespace) -> int:
    """As ``demo.command.main``. Raises CommandError when something does not start."""
    try:
        return command.main(args)
    except DemoError as error:
        raise CommandError(str(error)) from None
