"""A decision: where a request goes and why, kept for explanation."""

from msgspec import Struct

from router_ext.model.backend import Backend
from router_ext.model.request import InferenceRequest


class Candidate(Struct, frozen=True):
    """One backend's part in a decision.

    ``filtered_by`` names the filter that removed it ("" when it stayed) and ``reason`` says what that filter saw, or
    that a slow backend was tried out. ``scores`` are (scorer, value) pairs in the order in which they count; lower is
    better.
    """

    backend: str
    filtered_by: str = ""
    reason: str = ""
    scores: tuple[tuple[str, float], ...] = ()


class Choice(Struct, frozen=True):
    """A request that can be served: the backend, the rule that allowed it and the model name to send.

    ``matched`` is the size of the prompt's prefix that the backend is expected to hold, in the unit of
    ``Prompt.size``: above 0 it is a KV pin hit. ``too_slow`` are the backends that the rule's ``max_ttft_ms`` left
    out; ``sla_missed`` is true when nobody else could serve, so that the limit was given up. ``downgraded``: the
    service's budget is spent, and this is the backend for what comes after that.
    """

    backend: Backend
    rule: str
    upstream_model: str
    candidates: tuple[Candidate, ...]
    matched: int = 0
    too_slow: tuple[str, ...] = ()
    sla_missed: bool = False
    downgraded: bool = False


class NoChoice(Struct, frozen=True):
    """A request that no backend can serve now.

    ``full`` is true when a backend would do but for its ``max_concurrent``, so that a short wait may help.
    ``paused_until`` (monotonic seconds) is the earliest time at which a backend that would do ends its pause, None when
    none is paused.
    """

    rule: str
    candidates: tuple[Candidate, ...]
    full: bool
    paused_until: float | None = None


class Decision(Struct, frozen=True):
    """The record of one decision. ``time_s`` is seconds since the epoch; ``backend`` is "" for a refused request.

    A request that fails over has one record an attempt, all with the same ``id``; ``attempt`` counts from 1. A request
    that is ``downgraded`` goes nowhere else.
    """

    id: str
    time_s: float
    request: InferenceRequest
    rule: str
    backend: str
    upstream_model: str
    candidates: tuple[Candidate, ...]
    rejection: str = ""
    attempt: int = 1
    downgraded: bool = False
