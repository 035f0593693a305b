"""How a command ends that is interrupted, or whose output nobody reads any more: without a traceback."""

import os
import sys
from collections.abc import Callable
from typing import TextIO

from router_ext.cli.exit_codes import EXIT_INTERRUPTED, EXIT_UNREAD


def ended_quietly(command: Callable[[], int]) -> int:
    """The exit code of ``command``; 130 after Ctrl-C, 141 once its output is closed."""
    _open_closed_streams()
    try:
        try:
            return command()
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        for stream in (sys.stdout, sys.stderr):
            _give_up(stream)
        return EXIT_UNREAD


def _open_closed_streams() -> None:
    """A program that is started without standard streams writes to nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for as long as the process


def _give_up(stream: TextIO) -> None:
    """What a closed ``stream`` still holds goes nowhere: Python writes it once more at its end."""
    try:
        stream.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
