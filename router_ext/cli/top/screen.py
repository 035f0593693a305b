"""Where frames go: a terminal that they refresh, a pipe or a file that they follow each other in, or JSON lines."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Final, Protocol

from rich.console import Console
from rich.live import Live

from router_ext.cli.failure import print_json
from router_ext.cli.top.frame import frame
from router_ext.cli.top.table import Table

PIPE_COLUMNS: Final = 120
"""Where there is no terminal and no ``COLUMNS``."""


class Screen(Protocol):
    """Takes what is to be shown."""

    def show(self, shown: Table | None, trouble: str = "") -> None:
        """As ``frame.frame``."""
        ...


@contextmanager
def screen(as_json: bool, refreshing: bool) -> Iterator[Screen]:
    """A terminal is refreshed when ``refreshing``, and is as it was afterwards."""
    # A pipe stays one also where FORCE_COLOR makes the console write as for a terminal.
    console = Console(highlight=False, width=_width())
    if as_json:
        yield _Lines()
    elif refreshing and sys.stdout.isatty():
        with Live(console=console, screen=True, auto_refresh=False, vertical_overflow="crop") as live:
            yield _Terminal(live)
    else:
        yield _Pipe(console)


class _Lines:
    def show(self, shown: Table | None, trouble: str = "") -> None:
        router = None if shown is None else asdict(shown)
        print_json({"error": trouble or None, "router": router})
        sys.stdout.flush()


class _Terminal:
    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, shown: Table | None, trouble: str = "") -> None:
        self._live.update(frame(shown, trouble), refresh=True)


class _Pipe:
    """Text is made by the console and written here: the console would end the process at a closed pipe."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def show(self, shown: Table | None, trouble: str = "") -> None:
        with self._console.capture() as made:
            self._console.print(frame(shown, trouble))
        sys.stdout.write(made.get())
        sys.stdout.flush()


def _width() -> int | None:
    """None: that of the terminal."""
    known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return None if known else PIPE_COLUMNS
