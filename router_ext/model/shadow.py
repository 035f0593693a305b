"""What comes of a shadow: the copy of a request that a backend under test answers and no client sees."""

from enum import StrEnum

from msgspec import Struct

from router_ext.model.outcome import Usage


class ShadowResult(StrEnum):
    """What became of a request that was drawn for a shadow.

    Both answers were compared; one of them was no completion (``unreadable``); variant B gave no whole 2xx answer in
    time (``failed``), or could not take the request (``skipped``); variant A gave none that could be compared with
    (``no_primary``); or there was no place for it (``dropped``).
    """

    COMPARED = "compared"
    UNREADABLE = "unreadable"
    FAILED = "failed"
    SKIPPED = "skipped"
    NO_PRIMARY = "no_primary"
    DROPPED = "dropped"


class VariantAnswer(Struct, frozen=True):
    """What one variant said, in how many seconds. ``cost_micro_usd`` is None where tokens or prices are not known.

    ``valid``: it fits the schema of its request; None without a schema, or where that says nothing.
    """

    backend: str
    text: str
    took_s: float
    usage: Usage | None = None
    cost_micro_usd: int | None = None
    valid: bool | None = None


class Comparison(Struct, frozen=True):
    """Two answers to one request. ``time_s`` is seconds since the epoch, ``similarity`` 0..1; ``length_ratio`` is B's
    length over A's, None where only A's is empty.
    """

    test: str
    decision_id: str
    time_s: float
    a: VariantAnswer
    b: VariantAnswer
    similarity: float
    length_ratio: float | None
