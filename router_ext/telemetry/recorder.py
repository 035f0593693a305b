"""The engine's telemetry: each happening becomes samples and, where it tells something, one log line."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from logging import INFO, WARNING
from typing import Final

import structlog
from prometheus_client import Counter, Histogram

from router_ext.engine.spend import OTHER
from router_ext.model.decision import Decision
from router_ext.model.gate import Quality, SchemaVerdict
from router_ext.model.outcome import AccessRecord, Outcome, Usage
from router_ext.model.rejection import Rejection
from router_ext.model.request import Caller
from router_ext.model.shadow import ShadowResult
from router_ext.model.snapshot import Health
from router_ext.telemetry.metrics import MICRO, Metrics

_SERIES_KEPT: Final = 4096


@dataclass(frozen=True, slots=True)
class _SettledSeries:
    duration: Histogram
    ttft: Histogram


class Recorder:
    """Implements ``ports.Telemetry``. ``named_services`` are the services that get a label value of their own."""

    def __init__(
        self,
        metrics: Metrics,
        log: structlog.typing.FilteringBoundLogger,
        wall: Callable[[], float],
        named_services: frozenset[str],
    ) -> None:
        self._metrics = metrics
        self._log = log
        self._wall = wall
        self.named_services = named_services
        # The labels of one settled exchange, looked up once: prometheus-client locks and validates at each look-up.
        self._settled = lru_cache(maxsize=_SERIES_KEPT)(self._settled_series)
        self._tokens = lru_cache(maxsize=_SERIES_KEPT)(self._token_series)
        self._requests = lru_cache(maxsize=_SERIES_KEPT)(metrics.requests.labels)
        self._costs = lru_cache(maxsize=_SERIES_KEPT)(metrics.cost_usd.labels)
        self._shared_published = lru_cache(maxsize=_SERIES_KEPT)(metrics.shared_published.labels)
        self._shared_received = lru_cache(maxsize=_SERIES_KEPT)(metrics.shared_received.labels)

    def _settled_series(self, service: str, backend: str) -> "_SettledSeries":
        metrics = self._metrics
        return _SettledSeries(
            metrics.duration.labels(service, backend),
            metrics.ttft.labels(backend),
        )

    def _token_series(self, backend: str) -> tuple[Counter, Counter]:
        tokens = self._metrics.tokens
        return tokens.labels(backend, "prompt"), tokens.labels(backend, "completion")

    def _service(self, caller: Caller) -> str:
        return caller.service if caller.service in self.named_services else OTHER

    def routed(self, decision: Decision) -> None:
        """Counts the request."""
        service = self._service(decision.request.caller)
        self._requests(service, decision.backend, decision.rule).inc()

    def settled(self, decision: Decision, outcome: Outcome) -> None:
        """Durations and errors, and the one line of the exchange."""
        service, backend = self._service(decision.request.caller), decision.backend
        record, failure = outcome.record, outcome.failure
        series = self._settled(service, backend)
        series.duration.observe(record.duration_s)
        if failure is not None:
            self._metrics.errors.labels(service, backend, failure).inc()
        elif outcome.ttft_s is not None and record.status < 400:
            series.ttft.observe(outcome.ttft_s)
        self._log.info("exchange", **_line(decision, outcome))

    def charged(self, caller: Caller, backend: str, kind: str, usage: Usage, micro_usd: int) -> None:
        """Counts tokens and dollars."""
        # Engines report what they like; a counter takes no negative numbers.
        prompt, completion = self._tokens(backend)
        prompt.inc(max(0, usage.prompt_tokens))
        completion.inc(max(0, usage.completion_tokens))
        self._costs(self._service(caller), backend, kind).inc(micro_usd / MICRO)

    def usage_estimated(self, backend: str) -> None:
        """Counts it."""
        self._metrics.usage_estimated.labels(backend).inc()

    def budget_action(self, caller: Caller, action: str) -> None:
        """Counts it."""
        self._metrics.budget_actions.labels(self._service(caller), action).inc()

    def unpriced_call(self, backend: str) -> None:
        """Counts it."""
        self._metrics.unpriced_calls.labels(backend).inc()

    def rate_limited(self, caller: Caller) -> None:
        """Counts it."""
        self._metrics.rate_limited.labels(self._service(caller)).inc()

    def gate_judged(self, seconds: float) -> None:
        """One observation an answer."""
        self._metrics.quality_gate_time.observe(seconds)

    def schema_validated(self, verdict: SchemaVerdict) -> None:
        """Counts it; a schema that cannot be used is no failure of the answer."""
        self._metrics.schema_validations.inc()
        if verdict not in (SchemaVerdict.VALID, SchemaVerdict.BAD_SCHEMA):
            self._metrics.schema_failures.inc()

    def gate_concluded(self, quality: Quality, reason: str) -> None:
        """Counts the request."""
        self._metrics.quality_gate.labels(quality.value, reason).inc()

    def ab_request(self, test: str, variant: str, *, fell_back: bool) -> None:
        """Counts it as the variant's, or as one that fell back."""
        (self._metrics.ab_fallbacks if fell_back else self._metrics.ab_requests).labels(test, variant).inc()

    def shadow_ended(self, test: str, result: ShadowResult) -> None:
        """Counts it."""
        self._metrics.shadows.labels(test, result.value).inc()

    def shadow_similarity(self, test: str, similarity: float) -> None:
        """One observation a comparison."""
        self._metrics.shadow_similarity.labels(test).observe(similarity)

    def failed_over(self, decision: Decision, to: str, reason: str) -> None:
        """Counts the move, with one line."""
        self._metrics.failovers.labels(decision.backend, to, reason).inc()
        self._log.info("failover", id=decision.id, backend=decision.backend, to=to, reason=reason)

    def retry_budget_exhausted(self, decision: Decision) -> None:
        """Counts the request that was not retried."""
        self._metrics.retry_budget_exhausted.inc()
        self._log.warning("retry_budget_exhausted", id=decision.id, backend=decision.backend)

    def circuit_changed(self, backend: str, *, is_open: bool) -> None:
        """Counts an opening; one line for either."""
        if is_open:
            self._metrics.circuit_trips.labels(backend).inc()
        self._log.warning("circuit", backend=backend, open=is_open)

    def paused(self, backend: str, seconds: float) -> None:
        """Counts the pause, with one line."""
        self._metrics.pauses.labels(backend).inc()
        self._log.info("pause", backend=backend, seconds=seconds)

    def sla_filtered(self, rule: str, backends: tuple[str, ...], *, missed: bool) -> None:
        """Counts every backend, and the limit that was given up."""
        for backend in backends:
            self._metrics.sla_filtered.labels(rule, backend).inc()
        if missed:
            self._metrics.sla_missed.labels(rule).inc()

    def pinned(self, backend: str, *, hit: bool) -> None:
        """Counts the hit or the miss."""
        (self._metrics.pin_hits if hit else self._metrics.pin_misses).labels(backend).inc()

    def cache_reported(self, backend: str, predicted_tokens: int, cached_tokens: int) -> None:
        """Counts both figures, so that their ratio shows how good the predictions are."""
        self._metrics.predicted_tokens.labels(backend).inc(predicted_tokens)
        self._metrics.cached_tokens.labels(backend).inc(cached_tokens)

    def scrape_errors(self, backend: str, count: int) -> None:
        """Counts them."""
        self._metrics.scrape_errors.labels(backend).inc(count)

    def lost(self, decision: Decision) -> None:
        """Counts the missing entry."""
        self._metrics.lost.labels(decision.backend).inc()
        self._log.warning("access_log_lost", id=decision.id, backend=decision.backend)

    def refused(self, caller: Caller, rejection: Rejection) -> None:
        """Counts the refusal."""
        self._metrics.errors.labels(self._service(caller), "", rejection.reason.value).inc()
        self._log.info("refused", reason=rejection.reason.value, status=rejection.status, param=rejection.param)

    def bypassed(self, record: AccessRecord) -> None:
        """Counts a request that went without the router."""
        self._metrics.bypassed.labels(record.route or OTHER).inc()
        self._log.warning("bypassed", route=record.route, status=record.status, flags=record.flags)

    def processed(self, seconds: float) -> None:
        """One observation an exchange."""
        self._metrics.processing.observe(seconds)

    def fault(self, place: str, error: BaseException) -> None:
        """Counts and logs with the traceback."""
        self._metrics.faults.labels(place).inc()
        self._log.error("fault", place=place, exc_info=error)

    def headers_only(self) -> None:
        """Counts the blind decision."""
        self._metrics.headers_only.inc()

    def watchers(self, count: int) -> None:
        """Sets the gauge."""
        self._metrics.watchers.set(count)

    def watch_event_dropped(self) -> None:
        """Counts."""
        self._metrics.watch_dropped.inc()

    def health_changed(self, backend: str, health: Health, cause: str) -> None:
        """One line."""
        self._log.info("health", backend=backend, health=health.value, cause=cause)

    def session_created(self) -> None:
        """Counts it."""
        self._metrics.session_creations.inc()

    def session_hydrated(self, tokens_saved: int) -> None:
        """Counts the request and the tokens."""
        self._metrics.session_hydrations.inc()
        # What a session holds comes from an engine's report or a store; a counter takes no negative numbers.
        self._metrics.session_tokens_saved.inc(max(0, tokens_saved))

    def session_evicted(self, reason: str) -> None:
        """Counts it."""
        self._metrics.session_evictions.labels(reason).inc()

    def session_store_call(self, operation: str, seconds: float, *, ok: bool) -> None:
        """One observation, and an error when there was no answer."""
        self._metrics.session_store.labels(operation).observe(seconds)
        if not ok:
            self._metrics.session_store_errors.labels(operation).inc()

    def turn_not_saved(self, reason: str) -> None:
        """Counts it."""
        self._metrics.session_turns_not_saved.labels(reason).inc()

    def sessions_active(self, count: int) -> None:
        """The last count is the gauge."""
        self._metrics.sessions_active.set(count)

    def shared_published(self, event: str) -> None:
        """Counts it."""
        self._shared_published(event).inc()

    def shared_received(self, event: str) -> None:
        """Counts it."""
        self._shared_received(event).inc()

    def shared_dropped(self, count: int) -> None:
        """Counts them."""
        self._metrics.shared_dropped.inc(count)

    def shared_connected(self, connected: bool, cause: str) -> None:
        """Sets the gauge, with one line."""
        self._metrics.shared_connected.set(connected)
        self._log.log(INFO if connected else WARNING, "shared_state", connected=connected, cause=cause)

    def reloaded(self, digest: str) -> None:
        """Success, with the digest of the file."""
        self._metrics.reload_success.set(1)
        self._metrics.reload_time.set(self._wall())
        self._log.info("config_loaded", digest=digest)

    def reload_refused(self, problem: str) -> None:
        """Failure, with every problem of the file."""
        self._metrics.reload_success.set(0)
        self._log.error("config_refused", problem=problem)

    def changes_taken_over(self) -> None:
        """Success."""
        self._metrics.changes_in_force.set(1)
        self._log.info("changes_taken_over")

    def changes_refused(self, problem: str) -> None:
        """Failure, with every problem of the changes."""
        self._metrics.changes_in_force.set(0)
        self._log.error("changes_refused", problem=problem)


def _line(decision: Decision, outcome: Outcome) -> dict[str, object]:
    record, usage, ttft_s = outcome.record, outcome.usage, outcome.ttft_s
    return {
        "id": decision.id,
        "service": decision.request.caller.service,
        "rule": decision.rule,
        "backend": decision.backend,
        "attempts": outcome.attempts,
        "path": decision.request.path,
        "model": decision.request.model,
        "stream": decision.request.stream,
        "status": record.status,
        "flags": record.flags,
        "failure": outcome.failure,
        "duration_ms": round(record.duration_s * 1000, 1),
        "ttft_ms": None if ttft_s is None else round(ttft_s * 1000, 1),
        "prompt_tokens": usage.prompt_tokens if usage else None,
        "completion_tokens": usage.completion_tokens if usage else None,
        **({"usage_estimated": True} if outcome.estimated else {}),
        **_experiment(decision, outcome),
    }


def _experiment(decision: Decision, outcome: Outcome) -> dict[str, object]:
    """Fields of a request that took part in an A/B test."""
    assignment = outcome.assignment
    if assignment is None:
        return {}
    return {
        "ab_test": assignment.test,
        "ab_variant": assignment.variant,
        "ab_fallback": not assignment.is_served_by(decision.backend),
    }
