"""One key of a terminal, without the Enter after it."""

import asyncio
import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def on_key(key: str, act: Callable[[], None]) -> Iterator[None]:
    """Calls ``act`` when ``key`` is pressed, within a running loop. Nothing where standard input is no terminal."""
    if not sys.stdin.isatty():
        yield
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    loop = asyncio.get_running_loop()

    def pressed() -> None:
        read = os.read(descriptor, 64)
        if not read:
            loop.remove_reader(descriptor)
        if key.encode() in read:
            act()

    tty.setcbreak(descriptor)
    loop.add_reader(descriptor, pressed)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
