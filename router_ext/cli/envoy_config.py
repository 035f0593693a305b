"""``router-ext envoy-config``: Envoy's configuration for a router configuration.

Backends that the admin API added are in it: an Envoy that starts anew knows them before the router does.
"""

import argparse
from pathlib import Path

from router_ext.cli.configuration import EXIT_BAD_CONFIG, add_config_argument, add_workers_argument, load_or_explain
from router_ext.envoygen.write import write_envoy_files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, the number of processes, and where to write."""
    add_config_argument(parser)
    add_workers_argument(parser)
    parser.add_argument("--out", type=Path, help="folder to write to (server.envoy_dir)", metavar="DIR")


def main(args: argparse.Namespace) -> int:
    """Writes ``bootstrap.yaml`` and ``clusters.yaml`` and says where; 2 when the configuration cannot be used."""
    loaded = load_or_explain(args.config, args.workers, with_changes=True)
    if loaded is None:
        return EXIT_BAD_CONFIG
    folder = (args.out or loaded.config.server.envoy_dir).absolute()
    write_envoy_files(loaded.config, folder)
    print(f"{folder}/bootstrap.yaml")
    return 0
