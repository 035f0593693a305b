"""Runs the simulation: ``python -m benchmarks.routing [FOLDER]``.

Prints a table for each setting and writes ``routing.json`` and ``routing.png`` into FOLDER (default
``build/bench-routing``). The last line is a JSON object with the figures to hold the policies to.
"""

import json
import sys
import time
from pathlib import Path

from benchmarks.routing.plot import plot
from benchmarks.routing.report import document, summary, table
from benchmarks.routing.settings import HotSetting, Results, Setting, run_hot_prefix, run_settings
from benchmarks.routing.trace import conversations


def main(folder: Path) -> None:
    """Everything, in about a minute and a half."""
    started = time.monotonic()
    results: dict[Setting, Results] = {}
    for setting, found in run_settings(conversations()):
        results[setting] = found
        print(table(str(setting), found), flush=True)
    hot: dict[HotSetting, Results] = {}
    for hot_setting, found in run_hot_prefix():
        hot[hot_setting] = found
        print(table(str(hot_setting), found), flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "routing.json").write_text(json.dumps(document(results, hot), indent=1) + "\n")
    plot(results, folder / "routing.png")
    print(f"Wrote {folder}/routing.json and {folder}/routing.png after {time.monotonic() - started:.0f} s.")
    print(json.dumps(summary(results, hot)))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/bench-routing"))
