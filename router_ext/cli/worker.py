"""``router-ext worker``: one process of ``serve --workers``, which starts it."""

import argparse
import os
import time
from pathlib import Path

from prometheus_client import values

from router_ext.app import Router
from router_ext.cli.configuration import add_config_argument, add_workers_argument
from router_ext.cli.serve import add_log_level_argument, explained, run
from router_ext.control import begin
from router_ext.telemetry.log import configure_logging
from router_ext.workers.place import WorkerFolder, WorkerPlace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Those of ``serve``, and this worker's place."""
    add_config_argument(parser)
    add_workers_argument(parser)
    add_log_level_argument(parser)
    parser.add_argument("--index", type=int, required=True, help="number of this worker, from 0")
    parser.add_argument("--count", type=int, required=True, help="how many workers there are")
    parser.add_argument("--folder", type=Path, required=True, help="folder of the supervisor", metavar="DIR")


def main(args: argparse.Namespace) -> int:
    """Serves until SIGTERM, SIGINT or the end of its standard input; exit codes as of ``serve``."""
    return explained(lambda: _serve(args))


def _serve(args: argparse.Namespace) -> int:
    configure_logging(args.log_level, worker=args.index)
    # Figures by number of the worker, not by process: one that takes the place of another goes on from its counts.
    values.ValueClass = values.MultiProcessValue(process_identifier=lambda: args.index)  # type: ignore[no-untyped-call]
    place = WorkerPlace(args.index, args.count, WorkerFolder(args.folder))
    running = begin(args.config, os.environ, args.count, time.time())
    return run(Router(args.config, os.environ, running, workers=args.workers, worker=place))
