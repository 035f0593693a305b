"""``router-ext serve``: the external processor."""

import argparse
import asyncio
import gc
import os
import sys
from collections.abc import Callable

from router_ext.app import Router
from router_ext.cli.configuration import EXIT_BAD_CONFIG, add_config_argument, add_workers_argument
from router_ext.config.loader import load
from router_ext.config.problem import ConfigError
from router_ext.telemetry.log import configure_logging
from router_ext.workers.supervisor import Supervisor


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, the number of processes and the log level."""
    add_config_argument(parser)
    add_workers_argument(parser)
    add_log_level_argument(parser)


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
    loaded = load(args.config, os.environ, args.workers)
    if loaded.config.server.workers > 1:
        options = ("--log-level", args.log_level, *(() if args.workers is None else ("--workers", str(args.workers))))
        return asyncio.run(Supervisor(args.config, os.environ, loaded.config.server, options=options).serve())
    return run(Router(args.config, os.environ, loaded, workers=args.workers))


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
