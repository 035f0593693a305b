"""What is known of the backends' caches when one request is decided."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct


class Affinity(Struct, frozen=True):
    """One prompt against the caches.

    ``matched`` has, for each backend that holds a prefix of the prompt, the longest one's size; both sizes are in the
    unit of ``Prompt.size``. ``seed`` (≥ 0) decides among equals: give each request another, such as a counter.
    ``now`` is in monotonic seconds, as in ``Prefill.free_at``.
    """

    size: int
    matched: Mapping[str, int]
    seed: int
    now: float


NO_AFFINITY: Final = Affinity(0, {}, 0, 0.0)
"""Nothing is known of the caches: the request is neither pinned nor balanced by prediction."""


class Balancing(StrEnum):
    """How a request is spread over the backends that may serve it; the value is the configuration's word."""

    PIN = "pin"
    PREDICTED_TTFT = "predicted_ttft"
