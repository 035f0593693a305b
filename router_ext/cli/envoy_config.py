"""``router-ext envoy-config``: Envoy's configuration for a router configuration.

Backends that the admin API added are in it: an Envoy that starts anew knows them before the router does.
"""

import argparse
from pathlib import Path

from router_ext.cli.configuration import (
    EXIT_BAD_CONFIG,
    add_config_argument,
    add_json_argument,
    add_workers_argument,
    load_or_explain,
)
from router_ext.cli.failure import print_json, problem_objects
from router_ext.envoygen.names import BOOTSTRAP_FILE, CLUSTERS_FILE
from router_ext.envoygen.write import write_envoy_files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, the number of processes, and where to write."""
    add_config_argument(parser)
    add_workers_argument(parser)
    parser.add_argument("--out", type=Path, help="folder to write to (default: server.envoy_dir)", metavar="DIR")
    add_json_argument(parser, "print one JSON object: files, warnings")


def main(args: argparse.Namespace) -> int:
    """Writes ``bootstrap.yaml`` and ``clusters.yaml`` and says where; 2 when the configuration cannot be used. Raises
    OSError.
    """
    loaded = load_or_explain(args.config, args.workers, with_changes=True, as_json=args.json)
    if loaded is None:
        return EXIT_BAD_CONFIG
    folder = (args.out or loaded.config.server.envoy_dir).absolute()
    write_envoy_files(loaded.config, folder)
    files = [str(folder / name) for name in (BOOTSTRAP_FILE, CLUSTERS_FILE)]
    if args.json:
        print_json({"files": files, "warnings": problem_objects(loaded.warnings)})
    else:
        print(files[0])
    return 0
