"""The arguments and the loop of ``router-ext top``."""

import argparse
import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Final

from router_ext.cli.base_url import ADMIN, base_url
from router_ext.cli.configuration import add_json_argument
from router_ext.cli.failure import CommandError
from router_ext.cli.top.keys import on_key
from router_ext.cli.top.reading import Reading, RouterAwayError, Source
from router_ext.cli.top.screen import Screen, screen
from router_ext.cli.top.table import Table, table
from router_ext.config.api_token import token_from
from router_ext.config.units import duration_s

_SHORTEST_S: Final = 0.1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which router, and how often."""
    parser.add_argument(
        "--admin", type=base_url, default=ADMIN, metavar="URL", help=f"the router's admin API (default: {ADMIN})"
    )
    parser.add_argument(
        "--interval", type=interval_s, default=1.0, metavar="TIME", help="time between two frames (default: 1s)"
    )
    parser.add_argument("--once", action="store_true", help="print one frame, of one interval, and end")
    add_json_argument(parser, "print each frame as one JSON object a line: error, router")


def interval_s(text: str) -> float:
    """Seconds of ``1s`` or ``500ms``, or of a plain number. Raises ArgumentTypeError."""
    seconds = duration_s(f"{text}s" if text.replace(".", "", 1).isdigit() else text)
    if seconds is None or not _SHORTEST_S <= seconds <= 3600:
        raise argparse.ArgumentTypeError("expected a time from 100ms to 1h, like 1s")
    return seconds


def main(args: argparse.Namespace) -> int:
    """0 when ended by its user, or printed once. Raises CommandError when a router that is asked once is away."""
    return asyncio.run(_run(args))


async def _run(args: argparse.Namespace) -> int:
    source = Source(args.admin, token_from(os.environ))
    try:
        if args.once:
            await _once(source, args)
        else:
            await _until_ended(source, args)
    finally:
        await source.close()
    return 0


async def _once(source: Source, args: argparse.Namespace) -> None:
    """Two readings, since rates are of the time between."""
    try:
        before = await source.read()
        await asyncio.sleep(args.interval)
        now = await source.read()
    except RouterAwayError as error:
        raise CommandError(str(error), code="router_away") from None
    with screen(args.json, refreshing=False) as out:
        out.show(table(now, before))


async def _until_ended(source: Source, args: argparse.Namespace) -> None:
    """Until q, SIGINT or SIGTERM."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    with ExitStack() as stack:
        out = stack.enter_context(screen(args.json, refreshing=True))
        if sys.stdout.isatty():
            stack.enter_context(on_key("q", ended.set))
        watch = Watch(source.read, out)
        loop.add_signal_handler(signal.SIGWINCH, watch.draw)
        await _first(ended.wait(), watch.run(args.interval))


class Watch:
    """Reads again and again. While the router is away the last table stays, and the frame says since when."""

    def __init__(self, read: Callable[[], Awaitable[Reading]], out: Screen) -> None:
        self._read = read
        self._out = out
        self._last: Reading | None = None
        self._shown: Table | None = None
        self._away_since: float | None = None
        self._trouble = ""

    async def run(self, pause_s: float) -> None:
        """A frame every ``pause_s`` seconds, or as fast as the router answers. Never returns."""
        while True:
            await self.look()
            self.draw()
            await asyncio.sleep(pause_s)

    async def look(self) -> None:
        """One reading."""
        try:
            now = await self._read()
        except RouterAwayError as error:
            if self._away_since is None:
                self._away_since = time.monotonic()
            self._trouble = str(error)
            return
        self._shown = table(now, self._last)
        self._last, self._away_since, self._trouble = now, None, ""

    def draw(self) -> None:
        """Shows what is known."""
        trouble = self._trouble
        if self._away_since is not None:
            trouble += f", for {time.monotonic() - self._away_since:.0f} s"
        self._out.show(self._shown, trouble)


async def _first(*things: Awaitable[object]) -> None:
    """Until one of ``things`` is done; the others are cancelled. Raises what it raises."""
    tasks = [asyncio.ensure_future(thing) for thing in things]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
