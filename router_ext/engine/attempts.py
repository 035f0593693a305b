"""Sending a request to one backend, as the accounts see it: begun once, ended once, whatever path it takes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson
from msgspec import Struct
from msgspec.structs import replace

from router_ext.engine.budgets import Budgets, Reservation
from router_ext.engine.caches import Caches, Expected
from router_ext.engine.charging import Charges
from router_ext.engine.pool import Pool, Slot
from router_ext.engine.replication import Replication
from router_ext.health.failures import FIRST_TOKEN_TIMEOUT, is_backend_error
from router_ext.health.pause import pause_s
from router_ext.model.decision import Decision
from router_ext.model.money import PROXIED
from router_ext.model.outcome import Carried, Usage
from router_ext.model.request import API_BY_PATH, InferenceRequest
from router_ext.ports import Clock, Telemetry
from router_ext.routing.pipeline import upstream_model


@dataclass(slots=True)
class Attempt:
    """One backend's turn at a request. Times are monotonic seconds; ``first_token_at`` stays None without a streamed
    token.

    ``expected`` is None where no cache is looked at. ``kind`` is what its cost is booked as (``model.money``).
    ``paused``: the backend asked to be left alone, which is no error. ``in_flight`` is false once the request no longer
    counts in its backend, ``ended`` is true once it is known how it ended. ``told``: other routers know that the
    backend's cache holds the prompt. ``reserved`` is what it may cost at most, None where no budget holds.
    """

    decision: Decision
    slot: Slot
    started_at: float
    expected: Expected | None = None
    kind: str = PROXIED
    first_token_at: float | None = None
    paused: bool = False
    in_flight: bool = True
    ended: bool = False
    told: bool = False
    reserved: Reservation | None = None

    @property
    def streamed_ttft_s(self) -> float | None:
        """Seconds from the request to its first streamed token."""
        return None if self.first_token_at is None else self.first_token_at - self.started_at


class AttemptEnd(Struct, frozen=True):
    """How an attempt ended. ``status`` is 0 without an answer; ``failure`` is one of ``health.failures`` or None.
    ``carried`` is None where nobody counted bytes. ``estimated``: ``usage`` is none that an engine reported.
    """

    status: int
    failure: str | None
    ttft_s: float | None = None
    usage: Usage | None = None
    carried: Carried | None = None
    estimated: bool = False

    @property
    def whole(self) -> bool:
        """True for a whole 2xx answer."""
        return 200 <= self.status < 300 and self.failure is None


class Attempts:
    """Begins and ends attempts. ``released`` is called whenever a backend has room for one request more."""

    def __init__(
        self,
        pool: Pool,
        caches: Caches,
        replication: Replication,
        telemetry: Telemetry,
        clock: Clock,
        *,
        charges: Charges,
        budgets: Budgets,
        released: Callable[[], None],
    ) -> None:
        self._pool = pool
        self._charges = charges
        self._budgets = budgets
        self._caches = caches
        self._replication = replication
        self._telemetry = telemetry
        self._clock = clock
        self._released = released

    def begin(self, decision: Decision, expected: Expected | None = None, kind: str = PROXIED) -> Attempt:
        """Counts the request in its backend, and what it may cost in its service's budget."""
        slot, now = self._pool[decision.backend], self._clock.monotonic()
        if expected is not None:
            slot.begin_prefill(decision.id, expected.missing, now, shows_first_token=decision.request.stream)
        slot.acquire()
        self._telemetry.routed(decision)
        reserved = self._budgets.reserve(decision, slot.state.backend)
        return Attempt(decision, slot, now, expected, kind, reserved=reserved)

    def first_token(self, attempt: Attempt) -> None:
        """The first generated token of a streamed answer passed; later ones change nothing."""
        if attempt.first_token_at is not None:
            return
        now = self._clock.monotonic()
        attempt.first_token_at = now
        if attempt.expected is not None:
            attempt.slot.first_token(attempt.decision.id, now)
            if self._is_current(attempt):
                self._warmed(attempt, attempt.expected, now)

    def answered(self, attempt: Attempt, message: bytes) -> None:
        """The whole answer is there, and its ``message`` will come back with the next turn of its session."""
        if attempt.expected is not None and self._is_current(attempt):
            attempt.told = False
            self._warmed(attempt, attempt.expected, self._clock.monotonic(), (orjson.loads(message),))

    def _warmed(self, attempt: Attempt, expected: Expected, now: float, answer: Sequence[object] = ()) -> None:
        """Other routers hear of a prompt once, and again when its answer extends it."""
        backend = attempt.slot.state.backend
        held = self._caches.warmed(expected, backend, now, answer)
        if not attempt.told:
            attempt.told = True
            self._replication.served(backend, held)

    def pause(self, attempt: Attempt, status: int, retry_after: str) -> None:
        """Leaves the backend alone for as long as its answer asks for; nothing where it does not."""
        seconds = pause_s(status, retry_after, self._clock.wall())
        if seconds is None:
            return
        attempt.paused = True
        attempt.slot.pause(self._clock.monotonic() + seconds)
        self._telemetry.paused(attempt.decision.backend, seconds)

    def abandon(self, attempt: Attempt) -> None:
        """Nobody knows how it ended: it no longer counts in its backend, nor in its service's budget."""
        self._release(attempt)
        attempt.slot.end_prefill(attempt.decision.id, self._clock.monotonic())

    def end(self, attempt: Attempt, end: AttemptEnd) -> None:
        """Takes it off its backend's count and learns from it. Call it once, also after ``abandon``."""
        self._release(attempt)
        attempt.ended = True
        slot, now = attempt.slot, self._clock.monotonic()
        if 0 < end.status < 500:
            slot.answered_at = now
        if is_backend_error(end.failure) and not attempt.paused and slot.error(now, attempt.started_at):
            self._replication.circuit_changed(slot.state.backend, is_open=True)
        if end.ttft_s is not None and _tells_ttft(end):
            slot.took(max(0.0, end.ttft_s), now)
        if attempt.expected is not None:
            self._settle_cache(attempt, attempt.expected, end, now)
        self._charge(attempt, self._counted(attempt, end))

    def settle(self, attempt: Attempt, end: AttemptEnd) -> AttemptEnd:
        """Ends a request's last attempt, unless it has ended. Returns its end with the usage that its bytes stand for
        where the engine reported none.
        """
        counted = self._counted(attempt, end)
        if not attempt.ended:
            self.end(attempt, end)
        return counted

    def _counted(self, attempt: Attempt, end: AttemptEnd) -> AttemptEnd:
        """What was generated was paid for, whole or cut. A stream that failed before its first token generated
        nothing.
        """
        carried, request = end.carried, attempt.decision.request
        if end.usage is not None or carried is None or request.path not in API_BY_PATH:
            return end
        if not 200 <= end.status < 300 or not carried.answer_bytes:
            return end
        if carried.streamed and end.failure is not None and attempt.first_token_at is None:
            return end
        return replace(end, usage=self._charges.estimates.estimate(*_model_of(attempt), carried), estimated=True)

    def _charge(self, attempt: Attempt, end: AttemptEnd) -> None:
        if end.usage is None:
            return
        call = attempt.decision, attempt.slot.state.backend, attempt.kind
        self._charges.book(*call, end.usage, estimated=end.estimated)
        if end.estimated:
            return
        self._budgets.learn(attempt.decision, end.usage)
        if end.whole and end.carried is not None:
            self._charges.estimates.learn(*_model_of(attempt), end.carried, end.usage)

    def _release(self, attempt: Attempt) -> None:
        if attempt.in_flight:
            attempt.in_flight = False
            attempt.slot.release()
            if attempt.reserved is not None:
                self._budgets.give_back(attempt.reserved)
            self._released()

    def _settle_cache(self, attempt: Attempt, expected: Expected, end: AttemptEnd, now: float) -> None:
        """What the request did to its backend's cache, and what the engine says it found there."""
        backend, prefilled = attempt.slot.state.backend, None
        if end.whole and self._is_current(attempt):
            # The report first: a prediction that was wrong drops the old pin, not the one of this request.
            report = self._caches.settled(expected, backend, end.usage, now)
            self._warmed(attempt, expected, now)
            if report is not None:
                prefilled = expected.chain.prompt.size - report.cached
                self._telemetry.cache_reported(backend.name, report.predicted_tokens, report.cached_tokens)
        attempt.slot.end_prefill(attempt.decision.id, now, prefilled)

    def _is_current(self, attempt: Attempt) -> bool:
        """False when the backend was removed, moved, or given another model since: its cache is not the one that the
        request went to.
        """
        backend, decision = attempt.slot.state.backend, attempt.decision
        still_there = self._pool.get(backend.name) is attempt.slot
        return still_there and decision.upstream_model == upstream_model(backend, decision.request.model)


def _model_of(attempt: Attempt) -> tuple[str, InferenceRequest]:
    return attempt.decision.upstream_model, attempt.decision.request


def _tells_ttft(end: AttemptEnd) -> bool:
    """A stream that was silent for too long tells a lower bound, without which a backend that hangs looks fast."""
    return end.failure == FIRST_TOKEN_TIMEOUT or (0 < end.status < 400 and end.failure is None)
