"""``router-ext mcp``: the MCP server of a running router, on standard input and output."""

import argparse
import asyncio
import os
import signal
import sys
from io import TextIOWrapper

from yarl import URL

from router_ext.cli.base_url import ADMIN, base_url
from router_ext.cli.configuration import EXIT_BAD_CONFIG
from router_ext.cli.serve import add_log_level_argument
from router_ext.config.api_token import token_from
from router_ext.config.problem import ConfigError
from router_ext.mcp.wire import claim_standard_streams
from router_ext.model.secret import Secret
from router_ext.telemetry.log import configure_logging, get_logger


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The router's address and the log level."""
    help_text = "the router's admin port (%(default)s); its token is read from ROUTER_API_TOKEN"
    parser.add_argument("--admin", type=base_url, default=ADMIN, metavar="URL", help=help_text)
    add_log_level_argument(parser)


def main(args: argparse.Namespace) -> int:
    """Serves until standard input ends and returns 0; 2 for an address, a token or a log level that cannot be used.

    A router that is away is told by the tools, which find it as soon as it is there.
    """
    wire = claim_standard_streams()
    # Nothing is to be put in order, and the thread that reads the wire cannot be woken.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        configure_logging(args.log_level)
        url, token = URL(args.admin), token_from(os.environ)
    except (ConfigError, ValueError) as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_CONFIG
    get_logger().info("mcp_started", admin=str(url), token=token is not None)
    _serve(url, token, *wire)
    return 0


def _serve(url: URL, token: Secret | None, wire_in: TextIOWrapper, wire_out: TextIOWrapper) -> None:
    """Until the client is gone, which then wants no more answers."""
    # Here, so that whatever these imports say is said when standard output is out of reach.
    from router_ext.mcp.stdio import serve_stdio

    try:
        asyncio.run(serve_stdio(url, token, wire_in, wire_out))
    except ExceptionGroup as errors:
        _, others = errors.split(BrokenPipeError)
        if others is not None:
            raise others from None
