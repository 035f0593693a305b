"""``router-ext``: the entry point of every command."""

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from router_ext.cli import (
    check_config,
    completion,
    doctor,
    dpo,
    envoy_config,
    explain,
    init,
    mcp,
    replay,
    serve,
    tail,
    worker,
)
from router_ext.cli.ending import ended_quietly
from router_ext.cli.failure import BadCallError, CommandError, report, report_bad_call
from router_ext.cli.parser import Command, build_parser
from router_ext.cli.top import command as top
from router_ext.config.problem import ConfigError
from router_ext.demo import command as demo
from router_ext.demo.sim import command as sim_backend
from router_ext.demo.stack import DemoError


def _complete(args: argparse.Namespace) -> int:
    return completion.main(args, build_parser(COMMANDS))


def _demo(args: argparse.Namespace) -> int:
    try:
        return demo.main(args)
    except DemoError as error:
        raise CommandError(str(error)) from None


COMMANDS: Final[tuple[Command, ...]] = (
    ("init write a configuration for what runs on this machine", init.add_arguments, init.main),
    ("check-config check a configuration file", check_config.add_arguments, check_config.main),
    ("envoy-config write Envoy's configuration", envoy_config.add_arguments, envoy_config.main),
    ("serve run the external processor", serve.add_arguments, serve.main),
    ("worker one process of `serve --workers`, which starts it", worker.add_arguments, worker.main),
    ("doctor check how Envoy and the router work together", doctor.add_arguments, doctor.main),
    ("explain say what would become of a request, and why", explain.add_arguments, explain.main),
    ("tail show live decisions of a running router", tail.add_arguments, tail.main),
    ("top show the running router as a table that refreshes", top.add_arguments, top.main),
    ("replay make recorded decisions again under another configuration", replay.add_arguments, replay.main),
    ("mcp tools for assistants, on standard input and output", mcp.add_arguments, mcp.main),
    ("dpo check and convert files of preference pairs", dpo.add_arguments, dpo.main),
    ("demo run the whole stack on this machine", demo.add_arguments, _demo),
    ("sim-backend run a simulated vLLM server", sim_backend.add_arguments, sim_backend.main),
    ("completion print the script that completes commands in a shell", completion.add_arguments, _complete),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code. Raises SystemExit after ``--help`` and for a bad call."""
    words = sys.argv[1:] if argv is None else argv
    return ended_quietly(lambda: _run(words))


def _run(words: Sequence[str]) -> int:
    try:
        args = build_parser(COMMANDS).parse_args(words)
    except BadCallError as error:
        raise SystemExit(report_bad_call(error, "--json" in words)) from None
    try:
        return int(args.run(args))
    except BrokenPipeError:
        raise
    except (CommandError, ConfigError, OSError) as error:
        return report(error, getattr(args, "json", False))


if __name__ == "__main__":
    sys.exit(main())
