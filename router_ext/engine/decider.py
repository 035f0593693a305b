"""Decisions over the live state, and the record of the last of them."""

from collections import deque
from collections.abc import Callable
from typing import Final

from router_ext.engine.caches import Caches
from router_ext.engine.pool import Pool
from router_ext.engine.watching import Watching
from router_ext.model.backend import Backend
from router_ext.model.decision import Choice, Decision, NoChoice, Seen
from router_ext.model.experiment import VARIANT_RULE, Assignment
from router_ext.model.rejection import Rejection
from router_ext.model.request import InferenceRequest
from router_ext.payload.prompt import PromptChain
from router_ext.ports import Clock, Telemetry
from router_ext.routing.asked import Asked
from router_ext.routing.pipeline import Pipeline
from router_ext.routing.scorers import NO_AFFINITY

RECENT_DECISIONS: Final = 1000
"""Decisions kept for explanation."""


class Decider:
    """Chooses backends. ``draw`` gives random numbers (0 ≤ x < 1). ``watching`` hears of each decision."""

    def __init__(
        self,
        pool: Pool,
        caches: Caches,
        telemetry: Telemetry,
        clock: Clock,
        *,
        id_prefix: str,
        draw: Callable[[], float],
        watching: Watching | None = None,
    ) -> None:
        self._pool = pool
        self._caches = caches
        self._telemetry = telemetry
        self._clock = clock
        self._prefix = id_prefix
        self._draw = draw
        self._watching = watching or Watching(telemetry)
        self._count = 0
        self._pipeline = Pipeline((), ())
        self.recent: Final[deque[Decision]] = deque(maxlen=RECENT_DECISIONS)

    def configure(self, pipeline: Pipeline) -> None:
        """Takes over new rules."""
        self._pipeline = pipeline

    def choose(
        self,
        request: InferenceRequest,
        chain: PromptChain | None,
        tried: frozenset[str] = frozenset(),
        *,
        dry: bool = False,
    ) -> Choice | NoChoice:
        """The best backend at this instant that has not been ``tried`` for this request. ``dry`` is for one that is not
        sent: nothing is drawn, and no pin counts as used.
        """
        # A request that has failed once is not for trying out a slow backend.
        draw = 1.0 if tried or dry else self._draw()
        return self._pipeline.route(self._asked(request, chain, draw, tried, dry=dry))

    def _asked(
        self, request: InferenceRequest, chain: PromptChain | None, draw: float, tried: frozenset[str], *, dry: bool
    ) -> Asked:
        now = self._clock.monotonic()
        affinity = NO_AFFINITY if chain is None else self._caches.affinity(chain, self._count, now, touches=not dry)
        return Asked(request, self._pool.snapshot(), affinity, now, draw, tried)

    def choose_for(
        self,
        assignment: Assignment | None,
        request: InferenceRequest,
        chain: PromptChain | None,
        tried: frozenset[str] = frozenset(),
        *,
        dry: bool = False,
    ) -> Choice | NoChoice:
        """The backend of the caller's variant; else that of the other variant; else, as without a test, the best."""
        for name in () if assignment is None else (assignment.backend, assignment.other_backend):
            choice = self.choose_named(name, VARIANT_RULE, request, chain, tried, dry=dry)
            if isinstance(choice, Choice):
                return choice
        return self.choose(request, chain, tried, dry=dry)

    def choose_only(
        self,
        backend: str,
        rule: str,
        request: InferenceRequest,
        chain: PromptChain | None,
        tried: frozenset[str],
    ) -> Choice | None:
        """The backend of this name, as a choice of ``rule``; None when it cannot take the request now."""
        choice = self.choose_named(backend, rule, request, chain, tried)
        return choice if isinstance(choice, Choice) else None

    def choose_named(
        self,
        backend: str,
        rule: str,
        request: InferenceRequest,
        chain: PromptChain | None,
        tried: frozenset[str] = frozenset(),
        *,
        dry: bool = False,
    ) -> Choice | NoChoice:
        """The same, with the reason where it cannot."""
        return self._pipeline.only(backend, rule, self._asked(request, chain, 1.0, tried, dry=dry))

    def first_available(self) -> Backend | None:
        """Where requests that are no inference go; None when every backend is down or drained."""
        return self._pipeline.first_available(self._pool.snapshot())

    def refuse(
        self, request: InferenceRequest, choice: NoChoice, rejection: Rejection, request_id: str = ""
    ) -> Decision:
        """Records a request that no backend can serve."""
        return self._keep(self._refused(self._next_id(), request, choice, rejection, request_id))

    def record(self, request: InferenceRequest, choice: Choice, request_id: str = "") -> Decision:
        """Records the choice for a new request. Call it before anything changes the backends' states."""
        return self._keep_chosen(self._chosen(self._next_id(), request, choice, 1, request_id), choice)

    def record_next(self, before: Decision, choice: Choice) -> Decision:
        """Records the choice for the next attempt of a request, under the same id."""
        decision = self._chosen(before.id, before.request, choice, before.attempt + 1, before.request_id)
        return self._keep_chosen(decision, choice)

    def unmade(
        self,
        request: InferenceRequest,
        choice: Choice | NoChoice,
        request_id: str = "",
        rejection: Rejection | None = None,
    ) -> Decision:
        """What would be recorded, without an id: nothing is kept. ``rejection`` is for a ``NoChoice``."""
        if isinstance(choice, Choice):
            return self._chosen("", request, choice, 1, request_id)
        return self._refused("", request, choice, rejection, request_id)

    def _chosen(
        self, decision_id: str, request: InferenceRequest, choice: Choice, attempt: int, request_id: str
    ) -> Decision:
        asked = choice.asked
        return Decision(
            id=decision_id,
            time_s=self._clock.wall(),
            request=request,
            rule=choice.rule,
            backend=choice.backend.name,
            upstream_model=choice.upstream_model,
            candidates=choice.candidates,
            attempt=attempt,
            downgraded=choice.downgraded,
            request_id=request_id,
            matched=None if asked is None or asked.affinity is NO_AFFINITY else choice.matched,
            seen=None if asked is None else Seen.of(asked),
        )

    def _refused(
        self,
        decision_id: str,
        request: InferenceRequest,
        choice: NoChoice,
        rejection: Rejection | None,
        request_id: str,
    ) -> Decision:
        return Decision(
            id=decision_id,
            time_s=self._clock.wall(),
            request=request,
            rule=choice.rule,
            backend="",
            upstream_model="",
            candidates=choice.candidates,
            rejection="" if rejection is None else rejection.reason.value,
            request_id=request_id,
            seen=None if choice.asked is None else Seen.of(choice.asked),
        )

    def _keep_chosen(self, decision: Decision, choice: Choice) -> Decision:
        if choice.too_slow or choice.sla_missed:
            self._telemetry.sla_filtered(choice.rule, choice.too_slow, missed=choice.sla_missed)
        self._watching.decided(decision)
        return self._keep(decision)

    def _keep(self, decision: Decision) -> Decision:
        self.recent.append(decision)
        return decision

    def _next_id(self) -> str:
        self._count += 1
        return f"{self._prefix}-{self._count:x}"
