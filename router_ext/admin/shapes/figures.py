"""Figures of the running router."""

from pydantic import Field

from router_ext.admin.shapes.base import Shown


class BackendFigures(Shown):
    """One backend since the start."""

    requests: int = Field(description="Given to it.")
    errors: int = Field(description="Of them, those that failed there.")
    prompt_tokens: int
    completion_tokens: int
    pin_hits: int
    pin_misses: int
    active_requests: int
    ttft_p50_ms: float | None
    ttft_p95_ms: float | None


class PinFigures(Shown):
    """Prefix pins."""

    entries: int
    hits: int
    misses: int
    hit_ratio: float | None = Field(description="0 to 1; null before the first request.")


class SessionFigures(Shown):
    """Sessions."""

    active: int
    created: int
    continued: int
    tokens_saved: int


class Stats(Shown):
    """Counts since the start of the router, over all of its processes."""

    uptime_seconds: float
    requests: int = Field(description="Given to a backend.")
    errors: int = Field(description="Those that failed at a backend.")
    refusals: int = Field(description="Refused before a backend was chosen.")
    in_flight: int
    backends: dict[str, BackendFigures]
    rules: dict[str, int] = Field(description="Requests by the rule that decided.")
    refusals_by_reason: dict[str, int]
    pins: PinFigures
    sessions: SessionFigures
    cost_today_usd: dict[str, float] = Field(description="By service; other for those that no setting names.")
    shadows: dict[str, dict[str, int]] = Field(description="By A/B test and result.")
    quality_gate: dict[str, int] = Field(description="By result.")


class EngineQueue(Shown):
    """What an engine says of itself."""

    running: float
    waiting: float
    age_seconds: float = Field(ge=0, description="Age of this reading.")


class QueueShown(Shown):
    """How busy one backend is."""

    backend: str
    in_flight: int = Field(description="Requests of this router there.")
    max_concurrent: int
    engine: EngineQueue | None = Field(description="Null where it does not say.")
    load: float = Field(description="Requests that routing reckons with, whoever sent them.")
    prefill_queued: float = Field(description="Bytes of prompts without a first token yet.")
    expected_wait_seconds: float | None = Field(description="Before another prompt is begun; null until learned.")
    drained: bool
    paused_seconds: float


class Queues(Shown):
    """Every backend, in the configuration's order."""

    queues: list[QueueShown]
