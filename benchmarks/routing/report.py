"""The results as text, as JSON and as four figures."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Final

from benchmarks.routing.policies import ORACLE, PIN, PREDICTED, SIMPLE
from benchmarks.routing.settings import TABLE, HotSetting, Results, Setting

HEAD: Final = f"{'policy':<18}{'prefix hit':>11}{'mean':>9}{'p90':>9}{'p99':>9}{'max/mean':>10}"


def table(title: str, results: Results) -> str:
    """One block of lines: a policy a line."""
    rows = [
        f"{name:<18}{item.hit:>10.1%} {item.mean_s:>7.3f}s {item.p90_s:>7.2f}s {item.p99_s:>7.2f}s"
        f"{item.max_over_mean:>10.2f}"
        for name, item in results.items()
    ]
    return "\n".join([title, HEAD, *rows, ""])


def summary(results: Mapping[Setting, Results], hot: Mapping[HotSetting, Results]) -> dict[str, float]:
    """The figures to hold the policies to: the worst over all settings, but for the gain at the table's setting."""
    loaded = results[TABLE]
    figures = {
        "ttft_vs_oracle_max": max(item[PREDICTED].mean_s / item[ORACLE].mean_s for item in results.values()),
        "ttft_vs_best_simple_loaded": loaded[PREDICTED].mean_s / min(loaded[name].mean_s for name in SIMPLE),
        "pin_hit_vs_best_min": min(
            item[PIN].hit / max(result.hit for result in item.values()) for item in results.values()
        ),
        "hot_prefix_max_over_mean": max(result.max_over_mean for item in hot.values() for result in item.values()),
    }
    return {name: round(value, 3) for name, value in figures.items()}


def document(results: Mapping[Setting, Results], hot: Mapping[HotSetting, Results]) -> dict[str, object]:
    """Everything, for a file."""
    return {
        "settings": [
            asdict(setting) | {"policies": {name: asdict(item) for name, item in found.items()}}
            for setting, found in results.items()
        ],
        "hot_prefix": [
            asdict(setting) | {"policies": {name: asdict(item) for name, item in found.items()}}
            for setting, found in hot.items()
        ],
        "summary": summary(results, hot),
    }
