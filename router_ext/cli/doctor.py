"""``router-ext doctor``: is Envoy wired as the router needs it, with what the admin API changed?"""

import argparse
import asyncio
import os
from collections.abc import Sequence
from typing import Final

import orjson
from rich.text import Text

from router_ext.cli.base_url import base_url, reachable
from router_ext.cli.configuration import (
    EXIT_BAD_CONFIG,
    add_config_argument,
    add_json_argument,
    add_workers_argument,
    load_or_explain,
)
from router_ext.cli.failure import EXIT_BAD_CALL, EXIT_WRONG, CommandError
from router_ext.cli.output import Output
from router_ext.config.api_token import token_from
from router_ext.config.sections import RouterConfig, Server
from router_ext.doctor.diagnosis import diagnose
from router_ext.doctor.fetch import Pages, admin_session
from router_ext.doctor.finding import Result, Severity
from router_ext.doctor.reader import read_state
from router_ext.doctor.state import State
from router_ext.envoygen import CaBundleNotFoundError
from router_ext.model.secret import Secret

MAX_WATCH_S: Final = 60.0
_NOTHING_THERE: Final = "There is nothing to look at: see what is reported above."
_COLOURS: Final = {"ok": "green", "warning": "yellow", "error": "bold red", "skipped": "dim"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, where both sides are, and for how long to watch."""
    add_config_argument(parser)
    add_workers_argument(parser)
    parser.add_argument("--envoy", type=base_url, help="Envoy's admin page (loopback, envoy_admin_port)", metavar="URL")
    parser.add_argument("--admin", type=base_url, help="the router's admin API (admin_host:admin_port)", metavar="URL")
    parser.add_argument("--watch", type=_watch, default=2.0, help="watch counters so long (2)", metavar="SECONDS")
    add_json_argument(parser)


def _watch(text: str) -> float:
    value_s = float(text)
    if not 0 <= value_s <= MAX_WATCH_S:
        raise argparse.ArgumentTypeError(f"must be from 0 to {MAX_WATCH_S:g}")
    return value_s


def main(args: argparse.Namespace) -> int:
    """0 without an error (warnings are shown), 1 with one, 2 when the configuration cannot be used. Raises CommandError
    and ConfigError.
    """
    loaded = load_or_explain(args.config, args.workers, with_changes=True, as_json=args.json)
    if loaded is None:
        return EXIT_BAD_CONFIG
    try:
        state = asyncio.run(_read(loaded.config, args, token_from(os.environ)))
    except CaBundleNotFoundError as error:
        raise CommandError(str(error), EXIT_BAD_CALL, "no_ca_bundle") from None
    results = diagnose(state)
    _print_json(results) if args.json else _print_lines(results)
    return EXIT_WRONG if _are(Severity.ERROR, results) else 0


async def _read(config: RouterConfig, args: argparse.Namespace, token: Secret | None) -> State:
    envoy_url = args.envoy or f"http://127.0.0.1:{config.server.envoy_admin_port}"
    async with admin_session() as session:
        envoy = Pages(session, envoy_url)
        router = Pages(session, args.admin or _admin_url(config.server), token)
        return await read_state(config, envoy, router, args.watch)


def _admin_url(server: Server) -> str:
    host = reachable(server.admin_host)
    return f"http://[{host}]:{server.admin_port}" if ":" in host else f"http://{host}:{server.admin_port}"


def _print_json(results: Sequence[Result]) -> None:
    report = {
        "errors": _are(Severity.ERROR, results),
        "warnings": _are(Severity.WARNING, results),
        "checks": [_report(result) for result in results],
    }
    print(orjson.dumps(report, option=orjson.OPT_INDENT_2).decode())


def _report(result: Result) -> dict[str, object]:
    findings = [{"wrong": one.wrong, "mend": one.mend} for one in result.findings or ()]
    return {"id": result.check.id, "status": result.status, "why": result.check.why, "findings": findings}


def _print_lines(results: Sequence[Result]) -> None:
    console = Output(soft_wrap=True)
    for result in results:
        if not result.findings:
            console.print(_line(result, result.check.looks_at if result.findings is not None else _NOTHING_THERE))
        for finding in result.findings or ():
            console.print(_line(result, finding.wrong))
            console.print(Text(f"{'':<30} mend: {finding.mend}"))
        if result.findings:
            console.print(Text(f"{'':<30} why: {result.check.why}", style="dim"))
    errors, warnings = (_are(severity, results) for severity in (Severity.ERROR, Severity.WARNING))
    console.print(f"{len(results)} checks, {errors} errors, {warnings} warnings")


def _line(result: Result, text: str) -> Text:
    return Text(f"{result.status:<9}", style=_COLOURS[result.status]).append(f"{result.check.id:<21}{text}", "default")


def _are(severity: Severity, results: Sequence[Result]) -> int:
    return sum(result.status == severity for result in results)
