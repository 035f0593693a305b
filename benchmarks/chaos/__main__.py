"""Kills, errors and silence under load, behind a real Envoy: ``python -m benchmarks.chaos``.

The last line is a JSON object. Exit code 0 when no request failed and the router counts none as open afterwards, else
1, and then the logs are kept.
"""

import argparse
import asyncio
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.chaos.report import failure_lines, passed, summary
from benchmarks.chaos.run import Settings, run
from benchmarks.chaos.schedule import FULL_S


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < 100_000:
        raise argparse.ArgumentTypeError(f"must be more than 0 and less than 100000, got {text}")
    return value


def _settings() -> Settings:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=_positive, default=FULL_S, help="length; the faults scale with it")
    parser.add_argument("--rate", type=_positive, default=50.0, help="requests a second")
    parser.add_argument("--seed", type=int, default=0, help="fixes the prompts and which requests are streamed")
    args = parser.parse_args()
    return Settings(args.seconds, args.rate, args.seed)


def _say(line: str) -> None:
    print(line, flush=True)


def main() -> int:
    """The run, its failures and its figures."""
    settings, folder = _settings(), Path(tempfile.mkdtemp(prefix="rx-chaos-"))
    begun = time.monotonic()
    results, page = asyncio.run(run(settings, folder, _say))
    figures = summary(results, page)
    for line in failure_lines(results):
        _say(line)
    if passed(figures):
        shutil.rmtree(folder)
    else:
        _say(f"Logs are in {folder}/logs.")
    figures |= {"duration_s": settings.seconds, "rate": settings.rate, "wall_s": round(time.monotonic() - begun, 1)}
    _say(json.dumps(figures))
    return 0 if passed(figures) else 1


if __name__ == "__main__":
    sys.exit(main())
