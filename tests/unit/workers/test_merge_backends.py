"""Backends and queues as several workers see them."""

from typing import Any

from router_ext.workers.merge_backends import merged_backends, merged_queues

BACKEND: dict[str, Any] = {
    "name": "a",
    "health": "healthy",
    "circuit_open": False,
    "drained": False,
    "paused_seconds": 0.0,
    "active_requests": 3,
    "load_elsewhere": 1.0,
    "ttft_p50_ms": None,
    "ttft_p95_ms": 20.0,
    "origin": "file",
}
QUEUE: dict[str, Any] = {
    "backend": "a",
    "in_flight": 2,
    "load": 4.0,
    "engine": None,
    "prefill_queued": 100.0,
    "expected_wait_seconds": None,
    "drained": False,
    "paused_seconds": 0.0,
}


def test_a_backend_is_shown_as_the_worker_sees_it_that_sees_it_worst() -> None:
    """What is not measured at one worker is taken from another; settings are the same at all."""
    other = BACKEND | {
        "health": "down",
        "circuit_open": True,
        "paused_seconds": 2.0,
        "active_requests": 2,
        "ttft_p50_ms": 7.0,
        "ttft_p95_ms": 10.0,
    }
    answers = [{"backends": [BACKEND, BACKEND | {"name": "b"}]}, {"backends": [other]}]
    a, b = merged_backends(answers)["backends"]
    assert a == other | {"active_requests": 3, "ttft_p95_ms": 20.0}
    assert b == BACKEND | {"name": "b"}


def test_a_queue_has_the_youngest_reading_and_all_prompts() -> None:
    """Each worker scrapes for itself, and knows the prompts that it sent."""
    old, young = ({"running": 1.0, "waiting": 0.0, "age_seconds": age} for age in (4.0, 0.5))
    answers = [
        {"queues": [QUEUE | {"engine": old, "expected_wait_seconds": 1.5}]},
        {"queues": [QUEUE | {"engine": young, "load": 5.0, "in_flight": 1}]},
        {"queues": [QUEUE]},
    ]
    (queue,) = merged_queues(answers)["queues"]
    assert queue == QUEUE | {
        "engine": young,
        "load": 5.0,
        "prefill_queued": 300.0,
        "expected_wait_seconds": 1.5,
    }
