"""Routing of live requests, from the question of a stream to the entry in the access log."""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from router_ext.config.sections import RouterConfig
from router_ext.engine.answers import ModelList, refusal
from router_ext.engine.caches import Caches, Expected
from router_ext.engine.caller import read_caller
from router_ext.engine.exchanges import OpenExchange, OpenExchanges
from router_ext.engine.forwarding import forward_inference, forward_other
from router_ext.engine.pool import Pool
from router_ext.engine.reconcile import LeakMeter
from router_ext.health.failures import succeeded
from router_ext.health.load import QueueReading
from router_ext.model.decision import Choice, Decision, NoChoice
from router_ext.model.headers import SESSION_HEADERS
from router_ext.model.outcome import AccessRecord
from router_ext.model.rejection import Reason, Rejection
from router_ext.model.request import API_BY_PATH, Caller, InferenceRequest
from router_ext.model.snapshot import Health
from router_ext.payload.inference import BodyLimits, InferenceBody, read_inference
from router_ext.payload.prompt import PromptChain
from router_ext.ports import Clock, Telemetry
from router_ext.routing.pipeline import Pipeline, upstream_model
from router_ext.stream.effects import Plan
from router_ext.stream.events import RequestHead

ROOM_WAIT_S: Final = 0.3
"""How long a request waits for room when every backend is full. The end of a request is known one access log batch
(50 ms) after it happened, so an answer of "full" may be that much out of date.
"""

RECENT_DECISIONS: Final = 1000
"""Decisions kept for explanation."""

MAX_PATH: Final = 256
"""How much of an unknown path a decision keeps."""

OTHER_RULE: Final = "other"
"""The rule name of requests that are no inference."""

SESSION_ROUTE: Final = "session-needs-router"
"""Envoy's route for session requests that the router did not see."""


@dataclass(frozen=True, slots=True)
class _Configured:
    """What one configuration means for the engine; replaced as a whole."""

    config: RouterConfig
    pipeline: Pipeline
    limits: BodyLimits
    models: ModelList

    @classmethod
    def of(cls, config: RouterConfig, created: int) -> "_Configured":
        server = config.server
        pipeline = Pipeline(
            config.rules,
            config.defaults.fallback_chain,
            queue_aware=server.queue_aware_routing,
            balancing=server.balancing,
            max_queue_ratio=server.kv_pinning.max_queue_ratio,
        )
        sees = any("vision" in backend.capabilities for backend in config.backends)
        limits = BodyLimits(server.max_body_bytes, content_type=pipeline.needs_content_type or sees)
        return cls(config, pipeline, limits, ModelList(config, created))


def wants_body(head: RequestHead) -> bool:
    """True for requests whose body decides where they go."""
    return head.method == "POST" and head.path in API_BY_PATH


class Engine:
    """The router's live state and what is done with it. Used from one event loop only.

    ``id_prefix`` must differ between processes and restarts: an access log entry that belongs to another process is not
    mistaken for one of ours.
    """

    def __init__(self, config: RouterConfig, telemetry: Telemetry, clock: Clock, id_prefix: str) -> None:
        self._telemetry = telemetry
        self._clock = clock
        self._prefix = id_prefix
        self._count = 0
        self._released = asyncio.Event()
        self._leaks: dict[str, LeakMeter] = {}
        self._looked_at = clock.monotonic()
        self._ended = 0
        self.pool: Final = Pool()
        self.caches: Final = Caches()
        self.exchanges: Final = OpenExchanges()
        self.recent: Final[deque[Decision]] = deque(maxlen=RECENT_DECISIONS)
        self.configure(config)

    @property
    def config(self) -> RouterConfig:
        """The configuration in force."""
        return self._now.config

    def configure(self, config: RouterConfig) -> None:
        """Takes over a new configuration. Requests in flight end on the old one."""
        self._now = _Configured.of(config, int(self._clock.wall()))
        self.pool.configure(config.backends)
        self.caches.configure(config.server.kv_pinning, config.backends)

    # Deciding

    async def plan(self, head: RequestHead, body: bytes | None) -> Plan:
        """What to do with a request. ``body`` is None when Envoy does not show it before the decision."""
        if not wants_body(head):
            return self._plan_other(head)
        caller = read_caller(head)
        if isinstance(caller, Rejection):
            return self._refuse(Caller(), caller)
        read = self._read(head, caller, body)
        if isinstance(read, Rejection):
            return self._refuse(caller, read)
        request, content = read
        chain = self.caches.read(request, content.envelope) if content is not None else None
        choice = self._choose(request, chain)
        if isinstance(choice, NoChoice) and choice.full:
            choice = await self._choose_with_patience(request, chain)
        if isinstance(choice, NoChoice):
            return self._refuse(caller, _no_backend(choice), request, choice)
        return self._commit(head, request, content, choice, chain)

    def _read(
        self, head: RequestHead, caller: Caller, body: bytes | None
    ) -> tuple[InferenceRequest, InferenceBody | None] | Rejection:
        if not self.config.server.sessions.enabled and any(name in head.headers for name in SESSION_HEADERS):
            return Rejection(Reason.SESSIONS_DISABLED, "Sessions are not enabled on this router.")
        if body is None:
            self._telemetry.headers_only()
            return InferenceRequest(head.path, caller), None
        encoding = head.headers.get("content-encoding", "")
        content = read_inference(head.path, caller, body, encoding, self._now.limits)
        return content if isinstance(content, Rejection) else (content.request, content)

    def _choose(self, request: InferenceRequest, chain: PromptChain | None) -> Choice | NoChoice:
        affinity = None
        if chain is not None:
            affinity = self.caches.affinity(chain, self._count, self._clock.monotonic())
        return self._now.pipeline.route(request, self.pool.snapshot(), affinity)

    async def _choose_with_patience(self, request: InferenceRequest, chain: PromptChain | None) -> Choice | NoChoice:
        """Decides again after each request that ends, for a short while."""
        deadline = self._clock.monotonic() + ROOM_WAIT_S
        choice = self._choose(request, chain)
        while isinstance(choice, NoChoice) and choice.full:
            left = deadline - self._clock.monotonic()
            try:
                await asyncio.wait_for(self._released.wait(), timeout=max(0.0, left))
            except TimeoutError:
                return choice
            choice = self._choose(request, chain)
        return choice

    def _commit(
        self,
        head: RequestHead,
        request: InferenceRequest,
        body: InferenceBody | None,
        choice: Choice,
        chain: PromptChain | None,
    ) -> Plan:
        """From choice to plan without an await, so that what was decided is what is counted."""
        backend = choice.backend
        decision = self._record(request, choice)
        pin, expected = None, None
        if chain is not None:
            pin, expected = choice.matched > 0, self.caches.expect(chain, backend, choice.matched)
            self._telemetry.pinned(backend.name, hit=pin)
        self._begin(decision, expected)
        return forward_inference(head, body, decision, backend, self.config.server.default_timeout_s, pin=pin)

    def _plan_other(self, head: RequestHead) -> Plan:
        answer = self._now.models.answer(head.path) if head.method == "GET" else None
        if answer is not None:
            return answer
        backend = self._now.pipeline.first_available(self.pool.snapshot())
        request = InferenceRequest(head.path[:MAX_PATH], Caller())
        if backend is None:
            nobody = NoChoice(OTHER_RULE, (), full=False)
            return self._refuse(Caller(), _no_backend(nobody), request, nobody)
        decision = self._record(request, Choice(backend, OTHER_RULE, "", ()))
        self._begin(decision)
        return forward_other(head, decision, backend)

    def _begin(self, decision: Decision, expected: Expected | None = None) -> None:
        slot, now = self.pool[decision.backend], self._clock.monotonic()
        if expected is not None:
            slot.begin_prefill(decision.id, expected.missing, now, shows_first_token=decision.request.stream)
        self.exchanges.begin(OpenExchange(decision, slot, now, expected))
        self._telemetry.routed(decision)

    def _refuse(
        self,
        caller: Caller,
        rejection: Rejection,
        request: InferenceRequest | None = None,
        choice: NoChoice | None = None,
    ) -> Plan:
        self._telemetry.refused(caller, rejection)
        if request is not None and choice is not None:
            self._record(request, choice, rejection.reason.value)
        return refusal(rejection)

    def _record(self, request: InferenceRequest, choice: Choice | NoChoice, rejection: str = "") -> Decision:
        self._count += 1
        chosen = choice if isinstance(choice, Choice) else None
        decision = Decision(
            id=f"{self._prefix}-{self._count:x}",
            time_s=self._clock.wall(),
            request=request,
            rule=choice.rule,
            backend=chosen.backend.name if chosen else "",
            upstream_model=chosen.upstream_model if chosen else "",
            candidates=choice.candidates,
            rejection=rejection,
        )
        self.recent.append(decision)
        return decision

    # Settling

    def first_token(self, decision_id: str) -> None:
        """The first generated token of a streamed answer passed."""
        exchange = self.exchanges.get(decision_id)
        if exchange is None or exchange.first_token_at is not None:
            return
        now = self._clock.monotonic()
        exchange.first_token_at = now
        if exchange.expected is not None:
            exchange.slot.first_token(decision_id, now)
            if self._is_current(exchange):
                self.caches.warmed(exchange.expected, exchange.slot.state.backend, now)

    def settle(self, record: AccessRecord) -> None:
        """An access log entry: ends the exchange it belongs to, or counts a request that Envoy served alone."""
        if not record.decision_id:
            if record.upstream_reached or record.route == SESSION_ROUTE:
                self._telemetry.bypassed(record)
            return
        exchange = self._end(record.decision_id)
        if exchange is None:
            return
        if 0 < record.status < 500:
            exchange.slot.answered_at = self._clock.monotonic()
        ttft = exchange.ttft_s
        if ttft is None and not exchange.decision.request.stream:
            ttft = record.last_upstream_byte_s
        self._telemetry.settled(exchange.decision, record, ttft)
        if exchange.expected is not None:
            self._settle_cache(exchange, exchange.expected, record)

    def _settle_cache(self, exchange: OpenExchange, expected: Expected, record: AccessRecord) -> None:
        """What the request did to its backend's cache, and what the engine says it found there."""
        now, backend = self._clock.monotonic(), exchange.slot.state.backend
        prefilled = None
        if succeeded(record) and self._is_current(exchange):
            # The report first: a prediction that was wrong drops the old pin, not the one of this request.
            report = self.caches.settled(expected, backend, record.usage, now)
            self.caches.warmed(expected, backend, now)
            if report is not None:
                prefilled = expected.chain.prompt.size - report.cached
                self._telemetry.cache_reported(backend.name, report.predicted_tokens, report.cached_tokens)
        exchange.slot.end_prefill(exchange.decision.id, now, prefilled)

    def _is_current(self, exchange: OpenExchange) -> bool:
        """False when the backend was removed, moved, or given another model since: its cache is not the one that the
        request went to.
        """
        backend, decision = exchange.slot.state.backend, exchange.decision
        still_there = self.pool.get(backend.name) is exchange.slot
        return still_there and decision.upstream_model == upstream_model(backend, decision.request.model)

    def reconcile(self, active_by_cluster: Mapping[str, int]) -> None:
        """Compares with the requests that Envoy has open by cluster, and gives up those whose log entries got lost.

        Call it about once a second. A cluster that is missing has none open, as after its removal; an empty mapping
        says nothing.
        """
        now = self._clock.monotonic()
        elapsed, self._looked_at = now - self._looked_at, now
        ended, self._ended = self._ended, 0
        rate = ended / elapsed if elapsed > 0 else 0.0
        for cluster in active_by_cluster.keys() | self.exchanges.clusters() if active_by_cluster else ():
            surplus = self.exchanges.count(cluster) - active_by_cluster.get(cluster, 0)
            lost = self._leaks.setdefault(cluster, LeakMeter()).observe(surplus, rate)
            for exchange in self.exchanges.give_up(cluster, lost) if lost else ():
                exchange.slot.end_prefill(exchange.decision.id, now)
                self._telemetry.lost(exchange.decision)
        self._wake_waiters()

    async def idle(self) -> None:
        """Returns when no exchange is open."""
        while len(self.exchanges):
            await self._released.wait()

    def _end(self, decision_id: str) -> OpenExchange | None:
        exchange = self.exchanges.end(decision_id)
        if exchange is not None:
            self._ended += 1
            self._wake_waiters()
        return exchange

    def _wake_waiters(self) -> None:
        self._released.set()
        self._released = asyncio.Event()

    # Backends

    def report(self, backend: str, reading: QueueReading | None, now: float) -> None:
        """What a scrape found; a restart empties the backend's cache."""
        slot = self.pool.get(backend)
        if slot is not None and slot.scraped(reading, now).restarted:
            slot.restarted()
            self.caches.forget(backend)

    def page_errors(self, backend: str, count: int) -> None:
        """A metrics page had values that could not be used."""
        self._telemetry.scrape_errors(backend, count)

    def set_health(self, name: str, health: Health) -> None:
        """What a probe found; nothing happens when the backend is gone meanwhile."""
        slot = self.pool.get(name)
        if slot is not None:
            slot.set_health(health)


def _no_backend(choice: NoChoice) -> Rejection:
    if choice.full:
        return Rejection(Reason.NO_BACKEND, "Every backend that can serve this request is full.", retry_after_s=1)
    return Rejection(Reason.NO_BACKEND, "No backend can serve this request now.", retry_after_s=5)
