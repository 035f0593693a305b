"""A decision: where a request goes and why, kept for explanation."""

from msgspec import Struct

from router_ext.model.affinity import NO_AFFINITY, Affinity
from router_ext.model.asked import Asked
from router_ext.model.backend import Backend
from router_ext.model.request import InferenceRequest
from router_ext.model.snapshot import BackendState


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
    service's budget is spent, and this is the backend for what comes after that. ``asked`` is what it was chosen from,
    None where nothing was asked.
    """

    backend: Backend
    rule: str
    upstream_model: str
    candidates: tuple[Candidate, ...]
    matched: int = 0
    too_slow: tuple[str, ...] = ()
    sla_missed: bool = False
    downgraded: bool = False
    asked: Asked | None = None


class NoChoice(Struct, frozen=True):
    """A request that no backend can serve now.

    ``full`` is true when a backend would do but for its ``max_concurrent``, so that a short wait may help.
    ``paused_until`` (monotonic seconds) is the earliest time at which a backend that would do ends its pause, None when
    none is paused. ``asked`` is as in ``Choice``.
    """

    rule: str
    candidates: tuple[Candidate, ...]
    full: bool
    paused_until: float | None = None
    asked: Asked | None = None


class Seen(Struct, frozen=True):
    """What a decision was made from beside request and configuration; names and units are those of ``Asked``.

    ``states`` are all backends at that instant.
    """

    states: tuple[BackendState, ...] = ()
    affinity: Affinity = NO_AFFINITY
    now: float = 0.0
    draw: float = 1.0
    tried: frozenset[str] = frozenset()

    @classmethod
    def of(cls, asked: Asked) -> "Seen":
        """The states as they are now: call it before anything changes them."""
        return cls(tuple(asked.snapshot.values()), asked.affinity, asked.now, asked.draw, asked.tried)


class Decision(Struct, frozen=True):
    """The record of one decision. ``time_s`` is seconds since the epoch; ``backend`` is "" for a refused request.

    A request that fails over has one record an attempt, all with the same ``id``; ``attempt`` counts from 1. A request
    that is ``downgraded`` goes nowhere else.

    ``request_id`` is the client's or Envoy's, "" where there is none of use. ``matched`` is that of ``Choice``, None
    where pins have no say. ``seen`` is None where no backends were compared.
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
    request_id: str = ""
    matched: int | None = None
    seen: Seen | None = None
