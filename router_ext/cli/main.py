"""``router-ext``: the entry point of every command."""

import sys
from collections.abc import Sequence

from router_ext.cli.catalogue import COMMANDS
from router_ext.cli.ending import ended_quietly
from router_ext.cli.failure import BadCallError, CommandError, report, report_bad_call
from router_ext.cli.parser import build_parser
from router_ext.config.problem import ConfigError


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns its exit code. Raises SystemExit after ``--help`` and for a bad call."""
    words = sys.argv[1:] if argv is None else argv
    return ended_quietly(lambda: _run(words))


def _run(words: Sequence[str]) -> int:
    try:
        args = build_parser(COMMANDS, asked=words).parse_args(words)
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
