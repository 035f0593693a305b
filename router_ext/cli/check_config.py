"""``router-ext check-config``: is this file a valid configuration?"""

import argparse
import os

from router_ext.cli.configuration import (
    EXIT_BAD_CONFIG,
    add_config_argument,
    add_json_argument,
    add_workers_argument,
    load_or_explain,
)
from router_ext.cli.failure import print_json, problem_objects
from router_ext.config.loader import load
from router_ext.config.problem import ConfigError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, and the number of processes."""
    add_config_argument(parser)
    add_workers_argument(parser)
    add_json_argument(parser, "print one JSON object: valid, problems, warnings, backends, rules")


def main(args: argparse.Namespace) -> int:
    """0 for a valid file (warnings are printed), 2 otherwise (every problem is printed)."""
    if args.json:
        return _report(args)
    loaded = load_or_explain(args.config, args.workers)
    if loaded is None:
        return EXIT_BAD_CONFIG
    config = loaded.config
    counts = f"{len(config.backends)} backends, {len(config.rules)} rules"
    print(f"{args.config}: valid ({counts}, {len(loaded.warnings)} warnings)")
    return 0


def _report(args: argparse.Namespace) -> int:
    """What is wrong is what the command found, so it is its result and no error."""
    report: dict[str, object] = {"file": str(args.config), "valid": True, "problems": [], "warnings": []}
    try:
        loaded = load(args.config, os.environ, args.workers)
    except ConfigError as error:
        print_json({**report, "valid": False, "problems": problem_objects(error.problems)})
        return EXIT_BAD_CONFIG
    backends = [backend.name for backend in loaded.config.backends]
    rules = [rule.name for rule in loaded.config.rules]
    print_json({**report, "warnings": problem_objects(loaded.warnings), "backends": backends, "rules": rules})
    return 0
