"""Why an exchange failed, as a label."""

from collections.abc import Iterable
from typing import Final

from router_ext.model.outcome import AccessRecord, StreamEnd

CLIENT_LEFT: Final = "client_left"
UNREACHABLE: Final = "upstream_unreachable"
TIMEOUT: Final = "timeout"
CUT: Final = "upstream_cut"
SERVER_ERROR: Final = "upstream_5xx"
STREAM_ERROR: Final = "stream_error"
TRUNCATED: Final = "stream_truncated"
FIRST_TOKEN_TIMEOUT: Final = "first_token_timeout"  # noqa: S105
RATE_LIMITED: Final = "rate_limited"
ROUTER_FAULT: Final = "router_fault"
QUALITY: Final = "quality_gate_failed"

_SIGNS: Final = (
    (CLIENT_LEFT, frozenset({"DC", "DR", "DPE"})),
    (UNREACHABLE, frozenset({"UF", "UH", "NC", "DF", "UO", "URX"})),
    (TIMEOUT, frozenset({"UT", "SI", "DT", "UMSDR"})),
    (CUT, frozenset({"UC", "UR", "LR", "UPE"})),
)
"""Labels by Envoy's response flags; the first one that fits counts."""

_STREAM_FAILURES: Final = {StreamEnd.ERROR: STREAM_ERROR, StreamEnd.TRUNCATED: TRUNCATED}

_NOT_THE_BACKENDS: Final = frozenset({None, CLIENT_LEFT, RATE_LIMITED, ROUTER_FAULT, QUALITY})


def of_flags(flags: Iterable[str]) -> str | None:
    """The reason that Envoy's response flags tell, None when they tell none."""
    return next((reason for reason, signs in _SIGNS if not signs.isdisjoint(flags)), None)


def of_answer(status: int, flags: Iterable[str]) -> str:
    """The reason of a failing answer (5xx or 429), with Envoy's flags where the answer is its own."""
    return of_flags(flags) or (RATE_LIMITED if status == 429 else SERVER_ERROR)


def failure_of(record: AccessRecord) -> str | None:
    """The reason why an exchange failed, None when it did not.

    Flags come before the status, and how a stream ended counts for 2xx answers without a failing flag only. A client
    that left is a reason of its own, which says nothing about the backend, unless the stream had said its last word.
    4xx answers are no failures.
    """
    by_flags, end = of_flags(record.flags), record.stream_end
    # Clients close as soon as they have read what they take for the end, be it good or bad.
    if by_flags == CLIENT_LEFT and end in (StreamEnd.WHOLE, StreamEnd.ERROR):
        return _STREAM_FAILURES.get(end)
    if by_flags is not None:
        return by_flags
    if record.status >= 500:
        return SERVER_ERROR
    return _STREAM_FAILURES.get(record.stream_end) if 200 <= record.status < 300 else None


def succeeded(record: AccessRecord) -> bool:
    """True for a whole 2xx answer."""
    return 200 <= record.status < 300 and failure_of(record) is None


def is_backend_error(failure: str | None) -> bool:
    """True for what a circuit breaker counts: every failure but those that say nothing of the backend's health.

    These are a client that left, a backend that is busy (429), a bug of the router, and answers that the quality gate
    refused.
    """
    return failure not in _NOT_THE_BACKENDS
