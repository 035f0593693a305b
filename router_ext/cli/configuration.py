"""The arguments that most commands take."""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Final

from router_ext.cli.failure import EXIT_BAD_CALL, report
from router_ext.config.loader import LoadedConfig, load
from router_ext.config.problem import ConfigError, Problem
from router_ext.control import begin

EXIT_BAD_CONFIG: Final = EXIT_BAD_CALL


def default_config() -> Path:
    """The configuration file of a call that names none: ``CONFIG_PATH``, else ``router.yaml``."""
    return Path(os.environ.get("CONFIG_PATH") or "router.yaml")


def add_config_argument(parser: argparse.ArgumentParser) -> None:
    """The configuration file: an argument, else ``default_config``."""
    text = "configuration file (default: $CONFIG_PATH, else router.yaml)"
    parser.add_argument("config", nargs="?", type=Path, default=default_config(), metavar="FILE", help=text)


def add_workers_argument(parser: argparse.ArgumentParser) -> None:
    """``--workers``, in place of ``server.workers``. Envoy's files and the router must be told the same."""
    parser.add_argument(
        "--workers", type=int, help="processes that answer Envoy (default: server.workers)", metavar="N"
    )


def add_json_argument(parser: argparse.ArgumentParser, text: str = "print one JSON object, also for an error") -> None:
    """``--json``; ``text`` says what is printed."""
    parser.add_argument("--json", action="store_true", help=text)


def load_or_explain(
    path: Path, workers: int | None = None, *, with_changes: bool = False, as_json: bool = False
) -> LoadedConfig | None:
    """The configuration, with warnings on stderr; None when it cannot be used, with every problem on stderr.

    ``workers`` is as in ``config.loader.load``. ``with_changes``: with the changes of the admin API that are on disk.
    ``as_json``: problems as an object for programs, and no warnings.
    """
    try:
        changed = begin(path, os.environ, workers, time.time()).loaded if with_changes else None
        loaded = changed or load(path, os.environ, workers)
    except ConfigError as error:
        report(error, as_json)
        return None
    for warning in loaded.warnings if not as_json else ():
        print(_warning(path.name, warning), file=sys.stderr)
    return loaded


def _warning(source: str, warning: Problem) -> str:
    return f"warning: {warning.located(source)}"
