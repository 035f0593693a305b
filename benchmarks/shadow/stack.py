"""What runs here: the backend that answers, one under test that answers too, and one that never does."""

from enum import StrEnum
from typing import Final

from benchmarks.stack import Setup

SPLIT_PCT: Final = 20


class Arm(StrEnum):
    """The service that a request names, and by it the test that it takes part in.

    That of ``INACTIVE`` is switched off. The variant B of ``HUNG`` and ``FULL`` never answers: ``HUNG`` has a place for
    each shadow of a run, ``FULL`` for 32, the default, and drops what is drawn beyond.
    """

    INACTIVE = "inactive"
    HEALTHY = "healthy"
    HUNG = "hung"
    FULL = "full"


HANGING_BACKEND: Final = "silent"

_PACE: Final = ("--decode-tps", "400")
"""An answer of 40 tokens takes 0.1 s."""

_UNCACHED: Final = ("--block-size", "100000")
"""Larger than any prompt: usage tells of cached tokens, which would make an answer differ from an earlier one."""

_TEST: Final = (
    f"match: {{service: %s}}, variant_a: large, variant_b: %s, split_pct: {SPLIT_PCT}, mode: shadow, max_inflight: %d"
)
_PLACES: Final = 5000


def _test(arm: Arm, variant_b: str, max_inflight: int, more: str = "") -> str:
    return f"  - {{name: {arm}, {_TEST % (arm, variant_b, max_inflight)}{more}}}\n"


_CONFIG: Final = (
    """\
backends:
  - {name: large, url: "http://127.0.0.1:{large}", type: vllm, model_name: sim, max_concurrent: 5000}
  - {name: small, url: "http://127.0.0.1:{small}", type: vllm, model_name: small, max_concurrent: 5000}
  - {name: silent, url: "http://127.0.0.1:{silent}", type: vllm, model_name: silent, max_concurrent: 5000}
rules:
  - {name: all, priority: 1, match: {model: sim}, backends: [large]}
defaults: {fallback_chain: [large]}
ab_tests:
"""
    + _test(Arm.INACTIVE, "small", _PLACES, ", active: false")
    + _test(Arm.HEALTHY, "small", _PLACES)
    + _test(Arm.HUNG, HANGING_BACKEND, _PLACES)
    + _test(Arm.FULL, HANGING_BACKEND, 32)
)

SETUP: Final = Setup(
    _CONFIG,
    {
        "large": ("--model", "sim", "--stable-ids", *_PACE, *_UNCACHED),
        "small": ("--model", "small", *_PACE),
        HANGING_BACKEND: ("--model", "silent"),
    },
)
