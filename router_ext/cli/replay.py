"""``router-ext replay``: recorded decisions, made again under another configuration."""

import argparse
from pathlib import Path
from typing import Final

from rich.table import Table

from router_ext.cli.configuration import EXIT_BAD_CONFIG, add_json_argument, load_or_explain
from router_ext.cli.failure import EXIT_BAD_CALL, CommandError, print_json
from router_ext.cli.output import Output
from router_ext.cli.recorded import RecordError, read_decisions
from router_ext.cli.replayed import Replay, replay
from router_ext.doctor.node import printable

EPILOG: Final = """\
FILE holds the lines of `router-ext tail --json`, or an answer of /api/decisions. Each request's first decision is made
again with the state of its time: health, loads, pauses and caches; a backend that was not there then is healthy and
idle. What rules do not decide is left out: later attempts, A/B tests, spent budgets, paths without inference."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The record and the configuration."""
    parser.epilog = EPILOG
    parser.add_argument("file", metavar="FILE", type=Path, help="recorded decisions")
    parser.add_argument("--config", required=True, type=Path, metavar="NEW", help="the configuration to try")
    add_json_argument(parser)


def main(args: argparse.Namespace) -> int:
    """0, or 2 for a configuration that cannot be used. Raises CommandError."""
    loaded = load_or_explain(args.config, as_json=args.json)
    if loaded is None:
        return EXIT_BAD_CONFIG
    try:
        result = replay(read_decisions(args.file), loaded.config)
    except (OSError, RecordError) as error:
        raise CommandError(str(error), EXIT_BAD_CALL, "bad_record") from None
    if args.json:
        print_json(result.report())
    else:
        _print(result)
    return 0


def _print(result: Replay) -> None:
    console = Output()
    console.print(f"{result.moved} of {result.replayed} decisions would move", style="bold")
    for reason, count in result.left_out.most_common():
        console.print(f"left out, {reason}: {count}")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("rule", "from", "to", "under rule", "count"):
        table.add_column(title, justify="right" if title == "count" else "left", no_wrap=True)
    for move, count in result.moves.most_common():
        words = move.rule, move.before or "refused", move.after or "refused", move.new_rule
        table.add_row(*map(printable, words), str(count))
    if result.moves:
        console.print(table)
    for rule, count in result.by_rule.most_common():
        console.print(f"{printable(rule)}: {result.moved_of(rule)} of {count} move")
