"""The configuration argument that most commands take."""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Final

from router_ext.config.loader import LoadedConfig, load
from router_ext.config.problem import ConfigError, Problem
from router_ext.control import begin

EXIT_BAD_CONFIG: Final = 2


def default_config() -> Path:
    """The configuration file where none is given: ``CONFIG_PATH``, else ``router.yaml``."""
    return Path(os.environ.get("CONFIG_PATH") or "router.yaml")


def add_config_argument(parser: argparse.ArgumentParser) -> None:
    """The configuration file as an argument."""
    default = default_config()
    parser.add_argument(
        "config", nargs="?", type=Path, default=default, metavar="FILE", help=f"configuration file ({default})"
    )


def add_workers_argument(parser: argparse.ArgumentParser) -> None:
    """``--workers``, in place of ``server.workers``. Envoy's files and the router must be told the same."""
    parser.add_argument("--workers", type=int, help="processes that answer Envoy (server.workers)", metavar="N")


def load_or_explain(path: Path, workers: int | None = None, *, with_changes: bool = False) -> LoadedConfig | None:
    """The configuration, with warnings on stderr; None when it cannot be used, with every problem on stderr.

    ``workers`` is as in ``config.loader.load``. ``with_changes``: with the changes of the admin API that are on disk.
    """
    try:
        changed = begin(path, os.environ, workers, time.time()).loaded if with_changes else None
        loaded = changed or load(path, os.environ, workers)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return None
    for warning in loaded.warnings:
        print(_warning(path.name, warning), file=sys.stderr)
    return loaded


def _warning(source: str, warning: Problem) -> str:
    return f"warning: {warning.located(source)}"
