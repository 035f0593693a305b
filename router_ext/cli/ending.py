"""How a command ends that is interrupted, or whose output nobody reads any more: without a traceback."""

import os
import sys
from collections.abc import Callable
from io import TextIOWrapper

from router_ext.cli.exit_codes import EXIT_INTERRUPTED, EXIT_UNREAD
from router_ext.cli.failure import EXIT_WRONG


def ended_quietly(command: Callable[[], int]) -> int:
    """The exit code of ``command``, which reports its own errors; 130 after Ctrl-C, 141 once nobody reads its output, 1
    when that cannot be written.
    """
    _prepare_streams()
    try:
        try:
            return command()
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _give_up()
        return EXIT_UNREAD
    except OSError as error:
        _give_up()
        print(f"router-ext: {error}", file=sys.stderr)
        return EXIT_WRONG


def _prepare_streams() -> None:
    """What is started without standard streams reads nothing and writes to nowhere, and a character that they do not
    know is no error.
    """
    # In the order of their descriptors: each takes the lowest one that is free.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for as long as the process
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _give_up() -> None:
    """What a stream still holds that cannot be written goes nowhere: Python writes it once more at its end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
