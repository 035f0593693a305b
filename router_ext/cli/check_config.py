"""``router-ext check-config``: is this file a valid configuration?"""

import argparse

from router_ext.cli.configuration import EXIT_BAD_CONFIG, add_config_argument, add_workers_argument, load_or_explain


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, and the number of processes."""
    add_config_argument(parser)
    add_workers_argument(parser)


def main(args: argparse.Namespace) -> int:
    """0 for a valid file (warnings are printed), 2 otherwise (every problem is printed)."""
    loaded = load_or_explain(args.config, args.workers)
    if loaded is None:
        return EXIT_BAD_CONFIG
    config = loaded.config
    counts = f"{len(config.backends)} backends, {len(config.rules)} rules"
    print(f"{args.config}: valid ({counts}, {len(loaded.warnings)} warnings)")
    return 0
