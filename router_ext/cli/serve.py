"""``router-ext serve``: the external processor."""

import argparse
import asyncio
import gc
import os
import sys
import time
from collections.abc import Callable

from router_ext.app import Router
from router_ext.cli.configuration import EXIT_BAD_CONFIG, add_config_argument, add_workers_argument
from router_ext.config.problem import ConfigError
from router_ext.control import begin, discard_changes
from router_ext.envoygen.write import write_clusters
from router_ext.telemetry.log import configure_logging
from router_ext.workers.supervisor import Supervisor


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, the number of processes, the log level, and whether to leave the changes of the admin API aside."""
    add_config_argument(parser)
    add_workers_argument(parser)
    add_log_level_argument(parser)
    help_text = "set the changes of the admin API aside, as changes.json.discarded in server.data_dir"
    parser.add_argument("--discard-changes", action="store_true", help=help_text)


def add_log_level_argument(parser: argparse.ArgumentParser) -> None:
    """``--log-level``."""
    default = os.environ.get("LOG_LEVEL", "info")
    parser.add_argument(
        "--log-level", default=default, help="debug, info, warning or error (default: $LOG_LEVEL, else info)"
    )


def main(args: argparse.Namespace) -> int:
    """Serves until SIGTERM or SIGINT: 0 after a drain, 2 for a bad configuration, 1 when an address is taken."""
    return explained(lambda: _serve(args))


def _serve(args: argparse.Namespace) -> int:
    configure_logging(args.log_level)
    discarded = discard_changes(args.config, os.environ) if args.discard_changes else None
    if discarded is not None:
        print(f"router-ext: the changes of the admin API are in {discarded}", file=sys.stderr)
    running = begin(args.config, os.environ, args.workers, time.time())
    server = running.loaded.config.server
    if discarded is not None:
        # Envoy may know a backend at the address that the changes gave it.
        write_clusters(running.loaded.config, server.envoy_dir)
    if server.workers > 1:
        options = ("--log-level", args.log_level, *(() if args.workers is None else ("--workers", str(args.workers))))
        return asyncio.run(Supervisor(args.config, os.environ, server, options=options).serve())
    return run(Router(args.config, os.environ, running, workers=args.workers))


def run(router: Router) -> int:
    """Runs a router to its end, and returns 0."""
    _settle_garbage_collector()
    asyncio.run(router.serve())
    return 0


def explained(serve: Callable[[], int]) -> int:
    """The exit code of ``serve``; for what it raises the code and one line, or all problems of the configuration."""
    try:
        return serve()
    except (ConfigError, ValueError) as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_CONFIG
    except (OSError, RuntimeError) as error:
        print(f"router-ext: {error}", file=sys.stderr)
        return 1


def _settle_garbage_collector() -> None:
    """Everything imported stays for good, and requests leave few cycles: full collections only cost latency."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
