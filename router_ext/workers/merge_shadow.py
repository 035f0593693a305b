"""The figures of one shadow test out of those of all workers."""

from typing import Any

Json = dict[str, Any]


def merged_shadow(one: Json, other: Json) -> Json:
    """Counts are added and means weighted by samples. Percentiles cannot be made out of those of the workers: the
    lowest is shown, which is the worst.
    """
    samples = one["samples"] + other["samples"]
    both = one, other
    return {
        "results": {name: count + other["results"][name] for name, count in one["results"].items()},
        "samples": samples,
        "similarity": _similarity(one, other),
        "length_ratio_mean": _mean([(item["length_ratio_mean"], item["samples"]) for item in both]),
        "latency": {
            name: _mean([(item["latency"][name], item["samples"]) for item in both]) for name in one["latency"]
        },
        "schema": {name: count + other["schema"][name] for name, count in one["schema"].items()},
        "cost": _cost(one["cost"], other["cost"]),
    }


def _similarity(one: Json, other: Json) -> Json:
    means = {
        name: _mean([(item["similarity"][name], item["samples"]) for item in (one, other)])
        for name in ("mean", "share_alike")
    }
    lowest = {name: _lowest(one["similarity"][name], other["similarity"][name]) for name in ("p10", "p50")}
    return {**one["similarity"], **means, **lowest}


def _cost(one: Json, other: Json) -> Json:
    costs = {
        name: _mean([(item[name], item["samples"]) for item in (one, other)])
        for name in ("a_per_1000_usd", "b_per_1000_usd")
    }
    a_usd, b_usd = costs["a_per_1000_usd"], costs["b_per_1000_usd"]
    per_day = round((one["requests_per_day"] or 0.0) + (other["requests_per_day"] or 0.0), 6)
    saving = None if a_usd is None or b_usd is None else round((a_usd - b_usd) / 1_000 * per_day, 6)
    samples = one["samples"] + other["samples"]
    return {"samples": samples, **costs, "requests_per_day": per_day, "saving_per_day_usd": saving}


def _mean(parts: list[tuple[float | None, int]]) -> float | None:
    """Of means with their weights; one without a mean has none."""
    known = [(mean, weight) for mean, weight in parts if mean is not None]
    total = sum(weight for _, weight in known)
    return round(sum(mean * weight for mean, weight in known) / total, 6) if total else None


def _lowest(*values: float | None) -> float | None:
    return min((value for value in values if value is not None), default=None)
