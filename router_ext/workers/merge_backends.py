"""Backends and their queues as all workers together see them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from router_ext.workers.merge import HEALTH_ORDER

Json = dict[str, Any]
_Fold = Callable[[Any, Any], Any]


def _highest(one: float | None, other: float | None) -> float | None:
    return max((value for value in (one, other) if value is not None), default=None)


def _youngest(one: Json | None, other: Json | None) -> Json | None:
    known = [reading for reading in (one, other) if reading is not None]
    return min(known, key=lambda reading: float(reading["age_seconds"]), default=None)


_BACKEND: Final[Mapping[str, _Fold]] = {
    "health": lambda one, other: max(one, other, key=HEALTH_ORDER.index),
    "circuit_open": lambda one, other: one or other,
    "drained": lambda one, other: one or other,
    "paused_seconds": max,
    # Each worker counts the requests of all: they differ by what changed between two answers.
    "active_requests": max,
    "load_elsewhere": max,
    "ttft_p50_ms": _highest,
    "ttft_p95_ms": _highest,
}

_QUEUE: Final[Mapping[str, _Fold]] = {
    "in_flight": max,
    "load": max,
    "engine": _youngest,
    # Each worker knows the prompts that it has sent itself.
    "prefill_queued": lambda one, other: one + other,
    "expected_wait_seconds": _highest,
    "drained": lambda one, other: one or other,
    "paused_seconds": max,
}


def merged_backends(answers: Sequence[Json]) -> Json:
    """``GET /api/backends``: each backend as the worker sees it that sees it worst. A percentile cannot be made out of
    those of the workers: the highest is shown.
    """
    return {"backends": _merged((item for answer in answers for item in answer["backends"]), "name", _BACKEND)}


def merged_queues(answers: Sequence[Json]) -> Json:
    """``GET /api/queue``: the highest load that a worker reckons with, and the youngest reading of the engine."""
    return {"queues": _merged((item for answer in answers for item in answer["queues"]), "backend", _QUEUE)}


def _merged(items: Iterable[Json], key: str, folds: Mapping[str, _Fold]) -> list[Json]:
    merged: dict[str, Json] = {}
    for item in items:
        one = merged.get(item[key])
        folded = {} if one is None else {name: fold(one[name], item[name]) for name, fold in folds.items()}
        merged[item[key]] = {**item, **folded}
    return list(merged.values())
