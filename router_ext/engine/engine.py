"""Routing of live requests, from the question of a stream to the entry in the access log."""

import random
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from router_ext.config.sections import RouterConfig
from router_ext.engine import asked_usage
from router_ext.engine.answers import refusal
from router_ext.engine.attempts import Attempts
from router_ext.engine.budgets import Budgets
from router_ext.engine.caches import Caches, Expected
from router_ext.engine.caller import read_caller, request_id_of
from router_ext.engine.charging import Charges
from router_ext.engine.choosing import Choosing, NotChosen, no_backend
from router_ext.engine.configured import Configured
from router_ext.engine.decider import Decider
from router_ext.engine.exchanges import KeptRequest, OpenExchange, OpenExchanges, Settled
from router_ext.engine.experiments import Experiments, given
from router_ext.engine.explaining import Explaining, Explanation
from router_ext.engine.failover import Failover
from router_ext.engine.forwarding import await_relay, forward_inference, forward_other
from router_ext.engine.gate import Gate
from router_ext.engine.intake import MAX_PATH, OTHER_RULE, Incoming, Intake, other_request, wants_body
from router_ext.engine.limits import KeptBytes
from router_ext.engine.pool import Pool
from router_ext.engine.rate_limits import RateLimits
from router_ext.engine.reconcile import Losses
from router_ext.engine.relays import relayed
from router_ext.engine.releases import Releases
from router_ext.engine.replication import Replication
from router_ext.engine.session_calls import TimedStore
from router_ext.engine.sessions import Sessions, edits_of
from router_ext.engine.settling import end_of
from router_ext.engine.shadow import Shadow, ShadowTools
from router_ext.engine.spend import Spend
from router_ext.engine.surroundings import NOTHING, Surroundings
from router_ext.engine.tries import RelayTools
from router_ext.engine.watching import Watching
from router_ext.health.failures import CLIENT_LEFT
from router_ext.health.load import QueueReading
from router_ext.model.decision import Choice, Decision, NoChoice
from router_ext.model.experiment import Assignment
from router_ext.model.outcome import AccessRecord, Outcome
from router_ext.model.rejection import Rejection
from router_ext.model.request import Caller, InferenceRequest
from router_ext.model.shared import SharedEvent
from router_ext.model.snapshot import Health
from router_ext.ports import Clock, Dispatcher, SessionStore, Telemetry
from router_ext.stream.effects import AskFollow, Followed, Plan, Relayed
from router_ext.stream.events import RequestHead, ResponseHeaders

SESSION_ROUTE: Final = "session-needs-router"
"""Envoy's route for session requests that the router did not see."""


class Engine:
    """The router's live state and what is done with it. Used from one event loop only.

    ``id_prefix`` must differ between processes and restarts: an access log entry that belongs to another process is not
    mistaken for one of ours.
    """

    def __init__(
        self,
        config: RouterConfig,
        telemetry: Telemetry,
        clock: Clock,
        dispatcher: Dispatcher,
        sessions: SessionStore,
        *,
        id_prefix: str,
        draw: Callable[[], float] = random.random,
        around: Surroundings = NOTHING,
    ) -> None:
        self._telemetry = telemetry
        self._clock = clock
        self._looked_at = clock.monotonic()
        self._ended = 0
        self._kept_bytes = KeptBytes()
        self.pool: Final = Pool(around.tally)
        self.caches: Final = Caches()
        self.exchanges: Final = OpenExchanges()
        self._releases = Releases(self.pool)
        self._losses = Losses(self.pool, self.exchanges)
        self.watching: Final = Watching(telemetry)
        live = self.pool, self.caches, telemetry, clock
        self._decider = Decider(*live, id_prefix=id_prefix, draw=draw, watching=self.watching)
        self.spend: Final = Spend(id_prefix, config.server.timezone)
        self._replicas = Replication(self.pool, self.caches, telemetry, clock, around.shared, spend=self.spend)
        self.charges: Final = Charges(self.spend, telemetry, clock, around.ledger)
        self.experiments: Final = Experiments(telemetry, clock)
        self.budgets: Final = Budgets(self.spend, telemetry, clock)
        self._rate_limits = RateLimits(telemetry, clock)
        self._workers = config.server.workers
        self._choosing = Choosing(self._decider, self.budgets, self._releases, telemetry, clock)
        accounts = self.pool, self.caches, self._replicas, telemetry, clock
        self._attempts = Attempts(*accounts, charges=self.charges, budgets=self.budgets, released=self._releases.tell)
        self._failover = Failover(self._decider, self._attempts, self.caches, self.exchanges, telemetry)
        self._sessions = Sessions(TimedStore(sessions, telemetry, clock), telemetry, clock)
        self._gate = Gate(around.judge, around.pairs, telemetry, clock, draw)
        self._relay_tools = RelayTools(self._attempts, self._failover, self._sessions, self._gate, dispatcher, clock)
        outside = around.judge, around.shadow_log, dispatcher, telemetry, clock
        self.shadow: Final = Shadow(
            ShadowTools(self.pool, self._decider, self.charges, *outside, released=self._releases.tell)
        )
        self._intake = Intake(self._sessions, self.caches, self.shadow, self.experiments)
        asked = self._rate_limits, self._choosing, self._decider, self._gate
        self._explaining = Explaining(self._intake, *asked, shadow=self.shadow, clock=clock)
        self.configure(config)

    @property
    def config(self) -> RouterConfig:
        """The configuration in force."""
        return self._now.config

    @property
    def recent(self) -> Sequence[Decision]:
        """The last decisions, oldest first."""
        return self._decider.recent

    def configure(self, config: RouterConfig) -> None:
        """Takes over a new configuration. Requests in flight end on the old one."""
        self._now = Configured.of(config, int(self._clock.wall()))
        self.charges.configure(config.named_services)
        self.budgets.configure(config.budgets, config.named_services, config.server.timezone)
        # A change of ``server.workers`` waits for a restart.
        self._rate_limits.configure(config.rate_limits, self._workers)
        self._decider.configure(self._now.pipeline)
        self.experiments.configure(config.ab_tests)
        server = config.server
        self.shadow.configure(config.ab_tests, timeout_s=server.default_timeout_s, max_body_bytes=server.max_body_bytes)
        self.spend.configure(config.server.timezone)
        self.pool.configure(config.backends, config.drained)
        self.caches.configure(config.server.kv_pinning, config.backends)

    # Deciding

    async def plan(
        self, head: RequestHead, body: bytes | None, *, can_relay: bool = True, can_follow: bool = True
    ) -> Plan:
        """What to do with a request. The arguments are those of ``Ask``."""
        if not wants_body(head):
            return self._plan_other(head)
        caller = read_caller(head)
        if isinstance(caller, Rejection):
            return self._refuse(head, Caller(), caller)
        incoming = self._rate_limits.take(caller) or await self._intake.read(
            head, caller, body, self._now, can_follow=can_follow
        )
        if isinstance(incoming, Rejection):
            return self._refuse(head, caller, incoming)
        if incoming.body is None:
            self._telemetry.headers_only()
        choice = await self._choosing.choose(incoming.request, incoming.chain, incoming.assignment)
        if isinstance(choice, NotChosen):
            return self._refuse(head, caller, choice.rejection, incoming.request, choice.nobody)
        if incoming.body is None:
            return self._commit_blind(head, incoming.request, choice, incoming.assignment)
        kept = KeptRequest(head, incoming.body, incoming.chain)
        return self._commit(kept, choice, incoming, can_relay=can_relay)

    async def explain(self, head: RequestHead, body: bytes) -> Explanation:
        """What would become of a request. Nothing is sent or counted."""
        return await self._explaining.explain(head, body, self._now)

    def _commit(
        self,
        request: KeptRequest,
        choice: Choice,
        incoming: Incoming,
        *,
        can_relay: bool,
    ) -> Plan:
        """From choice to plan without an await, so that what was decided is what is counted."""
        backend, chain, turn = choice.backend, request.chain, incoming.turn
        decision = self._decider.record(request.body.request, choice, request_id_of(request.head))
        pin, expected = None, None
        if chain is not None:
            pin, expected = choice.matched > 0, self.caches.expect(chain, backend, choice.matched)
            self._telemetry.pinned(backend.name, hit=pin)
        exchange = self._begin(decision, expected)
        exchange.turn, exchange.assignment = turn, given(incoming.assignment, choice)
        server, stream = self.config.server, decision.request.stream
        timeout_s = server.stream_idle_timeout_s if stream else server.default_timeout_s
        if can_relay and self._kept_bytes.take(request.size):
            exchange.kept = request
        self._gate.look(self.config.quality_gate, exchange, request)
        self.shadow.look(exchange)
        watched = stream and self.config.defaults.first_token_timeout_s is not None
        brings = asked_usage.look(self.config, exchange) or exchange.gate is not None or exchange.shadow is not None
        if exchange.kept is not None and (watched or brings):
            exchange.relay_first = True
            return await_relay(decision, timeout_s)
        plan = forward_inference(request.head, request.body, exchange, timeout_s, pin=pin, failover=can_relay)
        return plan if turn is None else replace(plan, follow=True, follow_edits=edits_of(turn))

    def _commit_blind(
        self, head: RequestHead, request: InferenceRequest, choice: Choice, assignment: Assignment | None
    ) -> Plan:
        """A request whose body nobody saw: it cannot be sent once more."""
        decision = self._decider.record(request, choice, request_id_of(head))
        exchange = self._begin(decision)
        exchange.assignment = given(assignment, choice)
        return forward_inference(head, None, exchange, self.config.server.default_timeout_s)

    def _plan_other(self, head: RequestHead) -> Plan:
        answer = self._now.models.answer(head.path) if head.method == "GET" else None
        if answer is not None:
            return answer
        backend, request = self._decider.first_available(), other_request(head)
        if backend is None:
            nobody = NoChoice(OTHER_RULE, (), full=False)
            return self._refuse(head, Caller(), no_backend(nobody, self._clock), request, nobody)
        decision = self._decider.record(request, Choice(backend, OTHER_RULE, "", ()), request_id_of(head))
        self._begin(decision)
        return forward_other(head, decision, backend)

    def _begin(self, decision: Decision, expected: Expected | None = None) -> OpenExchange:
        exchange = OpenExchange(self._attempts.begin(decision, expected), self._clock.monotonic())
        self.exchanges.begin(exchange)
        return exchange

    def _refuse(
        self,
        head: RequestHead,
        caller: Caller,
        rejection: Rejection,
        request: InferenceRequest | None = None,
        choice: NoChoice | None = None,
    ) -> Plan:
        self._telemetry.refused(caller, rejection)
        if request is not None and choice is not None:
            decision = self._decider.refuse(request, choice, rejection, request_id_of(head))
            self.watching.refused(decision, rejection)
        elif self.watching.active:
            unread = NoChoice("", (), full=False)
            request = InferenceRequest(head.path[:MAX_PATH], caller)
            self.watching.refused(self._decider.unmade(request, unread, request_id_of(head), rejection), rejection)
        return refusal(rejection)

    # Answers

    def relay(self, decision_id: str, seen: ResponseHeaders) -> AsyncGenerator[Relayed]:
        """The answer that takes the place of the one that begins with ``seen``: head, then body. Nothing when that one
        must do. Close it, also in the middle of an answer.
        """
        exchange = self.exchanges.get(decision_id)
        return self.shadow.teed(exchange, relayed(exchange, self.config, self._relay_tools, seen))

    async def follow(self, decision_id: str, ask: AskFollow) -> Followed:
        """What becomes of a piece of a session's answer."""
        exchange = self.exchanges.find(decision_id)
        if exchange is None or exchange.turn is None:
            raise LookupError(f"the exchange {decision_id} is gone before its answer was")
        followed = await self._sessions.follow(exchange.turn, ask.data, end=ask.end, events=ask.events)
        if exchange.turn.has_token:
            self._attempts.first_token(exchange.attempt)
        if followed.done and exchange.turn.kept is not None:
            self._attempts.answered(exchange.attempt, exchange.turn.kept)
        return followed

    def first_token(self, decision_id: str) -> None:
        """The first generated token of a streamed answer passed."""
        exchange = self.exchanges.get(decision_id)
        if exchange is not None:
            self._attempts.first_token(exchange.attempt)

    def left(self, decision_id: str) -> None:
        """Envoy goes on with the request alone, or has ended it: it cannot be sent once more."""
        exchange = self.exchanges.get(decision_id)
        if exchange is not None:
            self._forget_request(exchange)

    def _forget_request(self, exchange: OpenExchange) -> None:
        if exchange.kept is not None:
            self._kept_bytes.give(exchange.kept.size)
            exchange.kept = None

    # Settling

    def settle(self, record: AccessRecord) -> None:
        """One access log entry: ``end``, then ``tell``."""
        settled = self.end(record)
        if settled is not None:
            self.charges.flush()
            self.tell(settled)

    def end(self, record: AccessRecord) -> Settled | None:
        """An access log entry: ends the exchange it belongs to, or counts a request that Envoy served alone.

        Call ``charges.flush`` and then ``tell`` with what is returned, once for several: nothing is told of before its
        cost is on file. None: there is nothing to tell.
        """
        if not record.decision_id:
            if record.upstream_reached or record.route == SESSION_ROUTE:
                self._telemetry.bypassed(record)
            return None
        exchange = self._end(record.decision_id)
        if exchange is None:
            return None
        end = self._attempts.settle(exchange.attempt, end_of(exchange, record))
        if exchange.turn is not None:
            self._sessions.ended(exchange.turn, client_left=end.failure == CLIENT_LEFT)
        how = end.failure, end.ttft_s, end.usage, exchange.attempts, exchange.assignment
        return Settled(exchange, Outcome(record, *how, estimated=end.estimated))

    def tell(self, settled: Settled) -> None:
        """What came of an exchange, for whoever counts or watches."""
        exchange, outcome = settled.exchange, settled.outcome
        self._telemetry.settled(exchange.attempt.decision, outcome)
        self.watching.settled(exchange, outcome)
        self.experiments.note(exchange.attempt.slot.state.backend, outcome)

    def reconcile(self, active_by_cluster: Mapping[str, int]) -> None:
        """Compares with the requests that Envoy has open by cluster, and gives up those whose log entries got lost.

        Call it about once a second. A cluster that is missing has none open, as after its removal; an empty mapping
        says nothing.
        """
        now = self._clock.monotonic()
        elapsed, self._looked_at = now - self._looked_at, now
        ended, self._ended = self._ended, 0
        rate = ended / elapsed if elapsed > 0 else 0.0
        for exchange in self._losses.look(active_by_cluster, rate, now):
            self._attempts.abandon(exchange.attempt)
            self._failover.settled(exchange)
            self._forget_request(exchange)
            self._telemetry.lost(exchange.attempt.decision)
        self._releases.tell()

    async def idle(self) -> None:
        """Returns when no exchange is open."""
        while len(self.exchanges):
            await self._releases.wait()

    def _end(self, decision_id: str) -> OpenExchange | None:
        exchange = self.exchanges.end(decision_id)
        if exchange is not None:
            self._ended += 1
            self._failover.settled(exchange)
            self._forget_request(exchange)
        return exchange

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

    def set_health(self, name: str, health: Health, *, alive: bool | None = None) -> None:
        """What a probe found, if the backend is still there. ``alive``: it proved life; None: if healthy it did."""
        slot = self.pool.get(name)
        lives = health is Health.HEALTHY if alive is None else alive
        if slot is not None and slot.probed(health, self._clock.monotonic(), alive=lives):
            self._replicas.circuit_changed(slot.state.backend, is_open=False)

    def apply(self, event: SharedEvent) -> None:
        """What another router saw of a backend; it is not told again."""
        self._replicas.apply(event)
