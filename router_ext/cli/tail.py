"""``router-ext tail``: live decisions of a running router, one line each."""

import argparse
import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rich.console import Console

from router_ext.cli.configuration import (
    EXIT_BAD_CONFIG,
    add_json_argument,
    add_workers_argument,
    default_config,
    load_or_explain,
)
from router_ext.cli.event_line import event_line
from router_ext.cli.output import Output
from router_ext.cli.running_router import RouterRefusedError, RunningRouter, decisions_at, token_note
from router_ext.config.sections import Address
from router_ext.decisions.record import json_of_message
from router_ext.v1 import decisions_pb2 as pb

RETRY_S: Final = 1.0
"""How long a process that went away is left alone."""

EPILOG: Final = f"""\
A line is a request that ended or was refused: time, status, service, rule, backend, pin, time to the first token,
tokens (prompt + completion, cached in brackets), cost, attempts. All workers are watched. A router that goes away is
waited for. {token_note()}"""

Show = Callable[[pb.WatchEvent], None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Filters and forms."""
    parser.epilog = EPILOG
    parser.add_argument("--config", type=Path, default=default_config(), metavar="FILE", help="configuration file")
    add_workers_argument(parser)
    for name, text in (
        ("service", "requests of this service"),
        ("rule", "decisions of this rule"),
        ("backend", "requests that were given to this backend"),
        ("request-id", "the decision of this id, or the request of this x-request-id"),
    ):
        parser.add_argument(f"--{name}", default="", help=f"only {text}")
    parser.add_argument("--decisions", action="store_true", help="also each decision when it is made")
    add_json_argument(parser, "print one JSON object a line, also for an error")


def main(args: argparse.Namespace) -> int:
    """0 after Ctrl-C, 2 for a configuration that cannot be used. Raises CommandError and ConfigError."""
    loaded = load_or_explain(args.config, args.workers, as_json=args.json)
    if loaded is None:
        return EXIT_BAD_CONFIG
    request = pb.WatchRequest(
        service=args.service,
        rule=args.rule,
        backend=args.backend,
        request_id=args.request_id,
        decisions=args.decisions,
    )
    try:
        router = RunningRouter.of(loaded.config.server)
        asyncio.run(Tail(router, request, print_json if args.json else lines_to(Output())).run())
    except KeyboardInterrupt:
        return 0
    return 0


def print_json(event: pb.WatchEvent) -> None:
    """One line."""
    print(json.dumps(json_of_message(event)), flush=True)


def lines_to(console: Console) -> Show:
    """Prints readable lines, in colour where the console has them."""

    def show(event: pb.WatchEvent) -> None:
        if event.dropped:
            console.print(f"… {event.dropped} more, too fast to be shown", style="yellow")
        console.print(event_line(event), soft_wrap=True)
        console.file.flush()

    return show


class Tail:
    """Watches every process of a router until it is cancelled, and begins anew with those that went away."""

    def __init__(self, router: RunningRouter, request: pb.WatchRequest, show: Show, retry_s: float = RETRY_S) -> None:
        self._router = router
        self._request = request
        self._show = show
        self._retry_s = retry_s
        self._found = False
        self._missed: set[Address] = set()

    async def run(self) -> None:
        """Raises RouterRefusedError when no process was there at first, or one does not serve the call."""
        tasks = [asyncio.create_task(self._keep_watching(address)) for address in self._router.addresses]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_watching(self, address: Address) -> None:
        while True:
            try:
                await self._watch(address)
            except RouterRefusedError as error:
                if not error.away or self._is_nowhere(address):
                    raise
            await asyncio.sleep(self._retry_s)

    def _is_nowhere(self, address: Address) -> bool:
        self._missed.add(address)
        return not self._found and len(self._missed) == len(self._router.addresses)

    async def _watch(self, address: Address) -> None:
        async with decisions_at(address) as decisions:
            events = decisions.Watch(self._request, metadata=self._router.metadata)
            await events.wait_for_connection()
            self._found = True
            async for event in events:
                self._show(event)
