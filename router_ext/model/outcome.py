"""How an exchange ended, as Envoy's access log tells it."""

from enum import StrEnum

from msgspec import Struct

from router_ext.model.experiment import Assignment


class Usage(Struct, frozen=True):
    """Token counts of one answer, as the engine reported them or as they are estimated; ``cached_tokens`` is the part
    of the prompt that its cache held, None when it does not say.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int | None = None


class Carried(Struct, frozen=True):
    """How many bytes of body one call took in each direction; ``streamed`` says that the answer came as events."""

    request_bytes: int
    answer_bytes: int
    streamed: bool


class StreamEnd(StrEnum):
    """How a streamed answer ended, by its own words."""

    UNKNOWN = ""
    """Not a stream, or nobody looked."""
    WHOLE = "whole"
    """It said that it is complete."""
    ERROR = "error"
    """It held an error event."""
    TRUNCATED = "truncated"
    """It ended in order, as HTTP sees it, without a last word."""


class AccessRecord(Struct, frozen=True):
    """One access log entry.

    ``decision_id`` is "" when Envoy served the request without the router. ``status`` is 0 when no response began.
    ``details`` says what made the response, ``upstream_reached`` that a backend was connected to.
    ``flags`` are Envoy's response flags (``UF``, ``UC``, ``DC`` …). Both times start with the first byte received:
    ``duration_s`` ends with the last byte sent, ``last_upstream_byte_s`` with the last byte that the backend sent (None
    when it sent none). ``stream_end`` is what Envoy saw of a streamed answer's end.
    """

    decision_id: str
    route: str
    cluster: str
    status: int
    details: str
    upstream_reached: bool
    flags: tuple[str, ...]
    duration_s: float
    last_upstream_byte_s: float | None
    request_bytes: int
    response_bytes: int
    usage: Usage | None
    stream_end: StreamEnd = StreamEnd.UNKNOWN


class Outcome(Struct, frozen=True):
    """How a request ended for its client. ``failure`` is one of ``health.failures``, None for a good answer or a 4xx.

    ``ttft_s`` is the time to the first token, to the full answer where it is not streamed, None when neither came. It
    counts from the start of the last attempt, of which there were ``attempts`` (≥ 1). ``assignment`` is the client's in
    an A/B test, None where it takes part in none. ``estimated``: ``usage`` is none that an engine reported.
    """

    record: AccessRecord
    failure: str | None
    ttft_s: float | None
    usage: Usage | None
    attempts: int = 1
    assignment: Assignment | None = None
    estimated: bool = False
