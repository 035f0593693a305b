"""``router-ext``: the entry point of every command.

Exit codes: 0 done, 1 the command found something wrong, 2 the call or the configuration is wrong.
"""

import argparse
import sys
from collections.abc import Callable, Sequence

from router_ext.cli import check_config, doctor, dpo, envoy_config, explain, mcp, replay, serve, tail, worker
from router_ext.demo import command as demo
from router_ext.demo.sim import command as sim_backend
from router_ext.version import __version__

Command = tuple[str, Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int]]

COMMANDS: tuple[Command, ...] = (
    ("serve run the external processor", serve.add_arguments, serve.main),
    ("worker one process of `serve --workers`, which starts it", worker.add_arguments, worker.main),
    ("check-config check a configuration file", check_config.add_arguments, check_config.main),
    ("envoy-config write Envoy's configuration", envoy_config.add_arguments, envoy_config.main),
    ("explain say what would become of a request, and why", explain.add_arguments, explain.main),
    ("tail show live decisions of a running router", tail.add_arguments, tail.main),
    ("replay make recorded decisions again under another configuration", replay.add_arguments, replay.main),
    ("doctor check how Envoy and the router work together", doctor.add_arguments, doctor.main),
    ("mcp tools for assistants, on standard input and output", mcp.add_arguments, mcp.main),
    ("dpo check and convert files of preference pairs", dpo.add_arguments, dpo.main),
    ("demo run the whole stack on this machine", demo.add_arguments, demo.main),
    ("sim-backend run a simulated vLLM server", sim_backend.add_arguments, sim_backend.main),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code."""
    parser = argparse.ArgumentParser(prog="router-ext", description="LLM router for Envoy")
    parser.add_argument("--version", action="version", version=f"router-ext {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for title, add_arguments, run in COMMANDS:
        name, _, text = title.partition(" ")
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        add_arguments(command)
        command.set_defaults(run=run)
    args = parser.parse_args(argv)
    try:
        return int(args.run(args))
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
