"""``router-ext serve``: the external processor."""

import argparse
import asyncio
import gc
import os
import sys

from router_ext.app import Router
from router_ext.cli.configuration import EXIT_BAD_CONFIG, add_config_argument
from router_ext.config.problem import ConfigError
from router_ext.telemetry.log import configure_logging


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file and the log level."""
    add_config_argument(parser)
    parser.add_argument(
        "--log-level", default=os.environ.get("LOG_LEVEL", "info"), help="debug, info, warning or error"
    )


def main(args: argparse.Namespace) -> int:
    """Serves until SIGTERM or SIGINT: 0 after a drain, 2 for a bad configuration, 1 when an address is taken."""
    try:
        configure_logging(args.log_level)
        router = Router(args.config, os.environ)
        _settle_garbage_collector()
        asyncio.run(router.serve())
    except (ConfigError, ValueError) as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_CONFIG
    except (OSError, RuntimeError) as error:
        print(f"router-ext: {error}", file=sys.stderr)
        return 1
    return 0


def _settle_garbage_collector() -> None:
    """Everything imported stays for good, and requests leave few cycles: full collections only cost latency."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
