"""Decisions over the live state, and the record of the last of them."""

from collections import deque
from collections.abc import Callable
from typing import Final

from router_ext.engine.caches import Caches
from router_ext.engine.pool import Pool
from router_ext.model.backend import Backend
from router_ext.model.decision import Choice, Decision, NoChoice
from router_ext.model.experiment import VARIANT_RULE, Assignment
from router_ext.model.request import InferenceRequest
from router_ext.payload.prompt import PromptChain
from router_ext.ports import Clock, Telemetry
from router_ext.routing.asked import Asked
from router_ext.routing.pipeline import Pipeline
from router_ext.routing.scorers import NO_AFFINITY

RECENT_DECISIONS: Final = 1000
"""Decisions kept for explanation."""


class Decider:
    """Chooses backends. ``draw`` gives random numbers (0 ≤ x < 1)."""

    def __init__(
        self,
        pool: Pool,
        caches: Caches,
        telemetry: Telemetry,
        clock: Clock,
        *,
        id_prefix: str,
        draw: Callable[[], float],
    ) -> None:
        self._pool = pool
        self._caches = caches
        self._telemetry = telemetry
        self._clock = clock
        self._prefix = id_prefix
        self._draw = draw
        self._count = 0
        self._pipeline = Pipeline((), ())
        self.recent: Final[deque[Decision]] = deque(maxlen=RECENT_DECISIONS)

    def configure(self, pipeline: Pipeline) -> None:
        """Takes over new rules."""
        self._pipeline = pipeline

    def choose(
        self, request: InferenceRequest, chain: PromptChain | None, tried: frozenset[str] = frozenset()
    ) -> Choice | NoChoice:
        """The best backend at this instant that has not been ``tried`` for this request."""
        now = self._clock.monotonic()
        affinity = NO_AFFINITY if chain is None else self._caches.affinity(chain, self._count, now)
        # A request that has failed once is not for trying out a slow backend.
        draw = 1.0 if tried else self._draw()
        return self._pipeline.route(Asked(request, self._pool.snapshot(), affinity, now, draw, tried))

    def choose_for(
        self,
        assignment: Assignment | None,
        request: InferenceRequest,
        chain: PromptChain | None,
        tried: frozenset[str] = frozenset(),
    ) -> Choice | NoChoice:
        """The backend of the caller's variant; else that of the other variant; else, as without a test, the best."""
        for name in () if assignment is None else (assignment.backend, assignment.other_backend):
            choice = self.choose_only(name, VARIANT_RULE, request, chain, tried)
            if choice is not None:
                return choice
        return self.choose(request, chain, tried)

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
    ) -> Choice | NoChoice:
        """The same, with the reason where it cannot."""
        now = self._clock.monotonic()
        affinity = NO_AFFINITY if chain is None else self._caches.affinity(chain, self._count, now)
        asked = Asked(request, self._pool.snapshot(), affinity, now, 1.0, tried)
        return self._pipeline.only(backend, rule, asked)

    def first_available(self) -> Backend | None:
        """Where requests that are no inference go; None when every backend is down or drained."""
        return self._pipeline.first_available(self._pool.snapshot())

    def refuse(self, request: InferenceRequest, choice: NoChoice, rejection: str) -> None:
        """Records a request that no backend can serve."""
        self._keep(self._decision(self._next_id(), request, choice, rejection=rejection))

    def record(self, request: InferenceRequest, choice: Choice) -> Decision:
        """Records the choice for a new request."""
        return self._chosen(self._next_id(), request, choice, 1)

    def record_next(self, before: Decision, choice: Choice) -> Decision:
        """Records the choice for the next attempt of a request, under the same id."""
        return self._chosen(before.id, before.request, choice, before.attempt + 1)

    def _chosen(self, decision_id: str, request: InferenceRequest, choice: Choice, attempt: int) -> Decision:
        if choice.too_slow or choice.sla_missed:
            self._telemetry.sla_filtered(choice.rule, choice.too_slow, missed=choice.sla_missed)
        decision = self._decision(decision_id, request, choice, backend=choice.backend.name, attempt=attempt)
        return self._keep(decision)

    def _decision(
        self,
        decision_id: str,
        request: InferenceRequest,
        choice: Choice | NoChoice,
        *,
        backend: str = "",
        rejection: str = "",
        attempt: int = 1,
    ) -> Decision:
        model = choice.upstream_model if isinstance(choice, Choice) else ""
        return Decision(
            id=decision_id,
            time_s=self._clock.wall(),
            request=request,
            rule=choice.rule,
            backend=backend,
            upstream_model=model,
            candidates=choice.candidates,
            rejection=rejection,
            attempt=attempt,
            downgraded=isinstance(choice, Choice) and choice.downgraded,
        )

    def _keep(self, decision: Decision) -> Decision:
        self.recent.append(decision)
        return decision

    def _next_id(self) -> str:
        self._count += 1
        return f"{self._prefix}-{self._count:x}"
