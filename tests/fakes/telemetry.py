"""Telemetry that keeps what it was told."""

from dataclasses import dataclass, field

from router_ext.model.decision import Decision
from router_ext.model.gate import Quality, SchemaVerdict
from router_ext.model.outcome import AccessRecord, Outcome, Usage
from router_ext.model.rejection import Rejection
from router_ext.model.request import Caller
from router_ext.model.shadow import ShadowResult
from router_ext.model.snapshot import Health


@dataclass(frozen=True, slots=True)
class Settled:
    """The arguments of one ``settled`` call."""

    decision: Decision
    outcome: Outcome

    @property
    def record(self) -> AccessRecord:
        """Envoy's entry."""
        return self.outcome.record

    @property
    def ttft_s(self) -> float | None:
        """Time to first token."""
        return self.outcome.ttft_s


@dataclass(slots=True)
class RecordingTelemetry:
    """Implements ``ports.Telemetry``: one list for each kind of happening, in the order of the calls.

    Like the real one it takes a decision's end once only: a second ``settled`` of one decision raises AssertionError.
    """

    decisions: list[Decision] = field(default_factory=list)
    ends: list[Settled] = field(default_factory=list)
    losses: list[Decision] = field(default_factory=list)
    refusals: list[tuple[Caller, Rejection]] = field(default_factory=list)
    bypasses: list[AccessRecord] = field(default_factory=list)
    processing_s: list[float] = field(default_factory=list)
    faults: list[tuple[str, BaseException]] = field(default_factory=list)
    blind_decisions: int = 0
    watching: int = 0
    watch_events_dropped: int = 0
    health: list[tuple[str, Health, str]] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    reload_problems: list[str] = field(default_factory=list)
    changes_taken: int = 0
    change_problems: list[str] = field(default_factory=list)
    pins: list[tuple[str, bool]] = field(default_factory=list)
    cache_reports: list[tuple[str, int, int]] = field(default_factory=list)
    page_errors: list[tuple[str, int]] = field(default_factory=list)
    moves: list[tuple[str, str, str]] = field(default_factory=list)
    unretried: list[Decision] = field(default_factory=list)
    circuits: list[tuple[str, bool]] = field(default_factory=list)
    pauses: list[tuple[str, float]] = field(default_factory=list)
    too_slow: list[tuple[str, tuple[str, ...], bool]] = field(default_factory=list)
    sessions_created: int = 0
    tokens_saved: list[int] = field(default_factory=list)
    evictions: list[str] = field(default_factory=list)
    store_calls: list[tuple[str, float, bool]] = field(default_factory=list)
    unsaved_turns: list[str] = field(default_factory=list)
    session_counts: list[int] = field(default_factory=list)
    events_published: list[str] = field(default_factory=list)
    events_received: list[str] = field(default_factory=list)
    events_dropped: list[int] = field(default_factory=list)
    connections: list[bool] = field(default_factory=list)
    gate_times: list[float] = field(default_factory=list)
    verdicts: list[SchemaVerdict] = field(default_factory=list)
    gated: list[tuple[str, str]] = field(default_factory=list)
    charges: list[tuple[str, str, str, int]] = field(default_factory=list)
    estimated: list[str] = field(default_factory=list)
    budget_actions: list[tuple[str, str]] = field(default_factory=list)
    unpriced_calls: list[str] = field(default_factory=list)
    rate_limits: list[str] = field(default_factory=list)
    ab_requests: list[tuple[str, str, bool]] = field(default_factory=list)
    shadows: list[tuple[str, str]] = field(default_factory=list)
    similarities: list[tuple[str, float]] = field(default_factory=list)

    def forget(self) -> None:
        """Empties every list, and starts the counts anew."""
        for name in self.__slots__:
            happenings = getattr(self, name)
            if isinstance(happenings, list):
                happenings.clear()
        self.blind_decisions = 0
        self.watch_events_dropped = 0
        self.sessions_created = 0

    def routed(self, decision: Decision) -> None:
        """Keeps the decision."""
        self.decisions.append(decision)

    def settled(self, decision: Decision, outcome: Outcome) -> None:
        """Keeps the end."""
        assert decision.id not in {end.decision.id for end in self.ends}, "settled twice"
        self.ends.append(Settled(decision, outcome))

    def charged(self, caller: Caller, backend: str, kind: str, usage: Usage, micro_usd: int) -> None:
        """Keeps the cost by service, backend and kind."""
        self.charges.append((caller.service, backend, kind, micro_usd))

    def usage_estimated(self, backend: str) -> None:
        """Keeps the backend."""
        self.estimated.append(backend)

    def budget_action(self, caller: Caller, action: str) -> None:
        """Keeps service and action."""
        self.budget_actions.append((caller.service, action))

    def unpriced_call(self, backend: str) -> None:
        """Keeps the backend."""
        self.unpriced_calls.append(backend)

    def rate_limited(self, caller: Caller) -> None:
        """Keeps the service."""
        self.rate_limits.append(caller.service)

    def gate_judged(self, seconds: float) -> None:
        """Keeps the time."""
        self.gate_times.append(seconds)

    def schema_validated(self, verdict: SchemaVerdict) -> None:
        """Keeps the verdict."""
        self.verdicts.append(verdict)

    def gate_concluded(self, quality: Quality, reason: str) -> None:
        """Keeps the result."""
        self.gated.append((quality.value, reason))

    def ab_request(self, test: str, variant: str, *, fell_back: bool) -> None:
        """Keeps the request."""
        self.ab_requests.append((test, variant, fell_back))

    def shadow_ended(self, test: str, result: ShadowResult) -> None:
        """Keeps the result."""
        self.shadows.append((test, result.value))

    def shadow_similarity(self, test: str, similarity: float) -> None:
        """Keeps the figure."""
        self.similarities.append((test, similarity))

    def failed_over(self, decision: Decision, to: str, reason: str) -> None:
        """Keeps the move."""
        self.moves.append((decision.backend, to, reason))

    def retry_budget_exhausted(self, decision: Decision) -> None:
        """Keeps the decision."""
        self.unretried.append(decision)

    def circuit_changed(self, backend: str, *, is_open: bool) -> None:
        """Keeps the change."""
        self.circuits.append((backend, is_open))

    def paused(self, backend: str, seconds: float) -> None:
        """Keeps the pause."""
        self.pauses.append((backend, seconds))

    def sla_filtered(self, rule: str, backends: tuple[str, ...], *, missed: bool) -> None:
        """Keeps what was left out."""
        self.too_slow.append((rule, backends, missed))

    def pinned(self, backend: str, *, hit: bool) -> None:
        """Keeps the hit or miss."""
        self.pins.append((backend, hit))

    def cache_reported(self, backend: str, predicted_tokens: int, cached_tokens: int) -> None:
        """Keeps the figures."""
        self.cache_reports.append((backend, predicted_tokens, cached_tokens))

    def scrape_errors(self, backend: str, count: int) -> None:
        """Keeps the count."""
        self.page_errors.append((backend, count))

    def lost(self, decision: Decision) -> None:
        """Keeps the decision."""
        self.losses.append(decision)

    def refused(self, caller: Caller, rejection: Rejection) -> None:
        """Keeps the refusal."""
        self.refusals.append((caller, rejection))

    def bypassed(self, record: AccessRecord) -> None:
        """Keeps the entry."""
        self.bypasses.append(record)

    def processed(self, seconds: float) -> None:
        """Keeps the time."""
        self.processing_s.append(seconds)

    def fault(self, place: str, error: BaseException) -> None:
        """Keeps the error."""
        self.faults.append((place, error))

    def headers_only(self) -> None:
        """Counts."""
        self.blind_decisions += 1

    def watchers(self, count: int) -> None:
        """Keeps the number."""
        self.watching = count

    def watch_event_dropped(self) -> None:
        """Counts."""
        self.watch_events_dropped += 1

    def health_changed(self, backend: str, health: Health, cause: str) -> None:
        """Keeps the change."""
        self.health.append((backend, health, cause))

    def session_created(self) -> None:
        """Counts."""
        self.sessions_created += 1

    def session_hydrated(self, tokens_saved: int) -> None:
        """Keeps the tokens."""
        self.tokens_saved.append(tokens_saved)

    def session_evicted(self, reason: str) -> None:
        """Keeps the reason."""
        self.evictions.append(reason)

    def session_store_call(self, operation: str, seconds: float, *, ok: bool) -> None:
        """Keeps the call."""
        self.store_calls.append((operation, seconds, ok))

    def turn_not_saved(self, reason: str) -> None:
        """Keeps the reason."""
        self.unsaved_turns.append(reason)

    def sessions_active(self, count: int) -> None:
        """Keeps the count."""
        self.session_counts.append(count)

    def shared_published(self, event: str) -> None:
        """Keeps the kind."""
        self.events_published.append(event)

    def shared_received(self, event: str) -> None:
        """Keeps the kind."""
        self.events_received.append(event)

    def shared_dropped(self, count: int) -> None:
        """Keeps the count."""
        self.events_dropped.append(count)

    def shared_connected(self, connected: bool, cause: str) -> None:
        """Keeps the change."""
        self.connections.append(connected)

    def reloaded(self, digest: str) -> None:
        """Keeps the digest."""
        self.digests.append(digest)

    def reload_refused(self, problem: str) -> None:
        """Keeps the problem."""
        self.reload_problems.append(problem)

    def changes_taken_over(self) -> None:
        """Counts it."""
        self.changes_taken += 1

    def changes_refused(self, problem: str) -> None:
        """Keeps the problem."""
        self.change_problems.append(problem)
