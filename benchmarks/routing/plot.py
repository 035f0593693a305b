"""The results as a picture: mean TTFT and cached share of every policy at every setting."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from matplotlib.figure import Figure

from benchmarks.routing.policies import POLICIES
from benchmarks.routing.settings import Results, Setting

COLOURS: Final = ("#9aa5b1", "#7b8794", "#52606d", "#f0b429", "#2186eb", "#1f2933")


def plot(results: Mapping[Setting, Results], path: Path) -> None:
    """Writes a PNG: a group of bars for each setting, a bar for each policy."""
    figure = Figure(figsize=(16, 9), layout="constrained")
    times, hits = figure.subplots(2, 1, sharex=True)
    width = 0.8 / len(POLICIES)
    for i, (name, colour) in enumerate(zip(POLICIES, COLOURS, strict=True)):
        places = [place + (i - len(POLICIES) / 2 + 0.5) * width for place in range(len(results))]
        times.bar(places, [item[name].mean_s for item in results.values()], width, label=name, color=colour)
        hits.bar(places, [item[name].hit * 100 for item in results.values()], width, color=colour)
    times.set(title="Replay of 12,031 requests", ylabel="mean TTFT (s)")
    times.legend(ncols=3)
    hits.set(ylabel="prompt tokens cached (%)")
    hits.set_xticks(range(len(results)), [str(setting).replace(", ", "\n") for setting in results], fontsize=8)
    figure.savefig(path, dpi=110)
