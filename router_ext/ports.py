"""What the engine needs from the outside, as Protocols. The shell provides them; tests bring their own."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import date
from typing import Final, Protocol

from router_ext.costs.days import Dates
from router_ext.model.backend import Backend
from router_ext.model.decision import Decision
from router_ext.model.gate import Quality, ReadAnswer, SchemaText, SchemaVerdict
from router_ext.model.ledger import Key, Row
from router_ext.model.outcome import AccessRecord, Outcome, Usage
from router_ext.model.rejection import Rejection
from router_ext.model.request import Caller
from router_ext.model.session import Session, SessionMeta, Turn
from router_ext.model.shadow import Comparison, ShadowResult
from router_ext.model.shared import SharedEvent
from router_ext.model.snapshot import Health
from router_ext.payload.inference import InferenceBody


class Clock(Protocol):
    """Two times: one to measure with, one to print."""

    def monotonic(self) -> float:
        """Seconds that never go back, from an arbitrary start."""
        ...

    def wall(self) -> float:
        """Seconds since the epoch."""
        ...


class UnreachableError(Exception):
    """No answer began: the backend, or Envoy on the way to it, could not be reached or closed the connection."""


class CutError(Exception):
    """An answer broke off before its end."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request that the router makes itself.

    ``target`` is the path (with query) at the backend. ``headers`` are lower case and hold what the backend is to see
    beside the host and the length; ``request_id`` names the attempt in Envoy's access log.
    """

    backend: Backend
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = field(repr=False)
    request_id: str


class UpstreamAnswer(Protocol):
    """A backend's answer whose headers have come. ``headers`` are lower case, without those of the connection."""

    @property
    def status(self) -> int:
        """The HTTP status; Envoy's own when it could not reach the backend."""
        ...

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Names and values in the order in which they came."""
        ...

    @property
    def flags(self) -> tuple[str, ...]:
        """Envoy's response flags; none for an answer of the backend itself."""
        ...

    def header(self, name: str) -> str:
        """The first value of a header, "" when it is missing."""
        ...

    def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises CutError when it breaks off."""
        ...


class Dispatcher(Protocol):
    """Sends requests to backends."""

    def post(self, call: Call) -> AbstractAsyncContextManager[UpstreamAnswer]:
        """Enters when the answer's headers have come; leaving closes the connection of an answer that is not at its
        end. Raises UnreachableError. Has no time limit of its own.
        """
        ...


class SessionStoreError(Exception):
    """The session store does not answer, or not in time: nothing is known of any session."""


class SessionStore(Protocol):
    """Keeps conversations. A session is there for its owner only: for anyone else it does not exist.

    Every call raises SessionStoreError when the store is away. ``now_s`` is seconds since the epoch. Each successful
    ``load`` and ``append`` begins the session's time to live anew.
    """

    async def create(self, session_id: str, owner: str, turn: Turn, now_s: float) -> None:
        """Keeps a new conversation, whose first turn this is. Older sessions make room for it, least recently used
        first.
        """
        ...

    async def load(self, session_id: str, owner: str, now_s: float) -> Session | None:
        """The conversation; None when it is unknown, expired, destroyed or another owner's."""
        ...

    async def append(self, session_id: str, owner: str, turn: Turn, now_s: float) -> bool:
        """Adds a turn as a whole, never in part and never within another turn. False when the session is gone."""
        ...

    async def delete(self, session_id: str, owner: str | None = None) -> bool:
        """Destroys a session, of any owner where none is given. False when it is not there."""
        ...

    async def listed(self, limit: int) -> Sequence[SessionMeta]:
        """Up to ``limit`` sessions, most recently used first."""
        ...

    async def count(self) -> int:
        """How many sessions are kept."""
        ...


class SchemaJudge(Protocol):
    """Says whether a text is JSON and fits a schema. Neither is trusted."""

    def refuses(self, schema: SchemaText) -> bool:
        """True for a schema that is known to be of no use, without judging anything."""
        ...

    async def judge(self, schema: SchemaText | None, text: str) -> SchemaVerdict:
        """Judges a text, whether it is JSON where there is no schema. Takes a bounded time, and never raises."""
        ...


@dataclass(frozen=True, slots=True)
class Rescue:
    """A bad answer in whose place the fallback's was given: the request's body as the backends got it, who answered,
    and what. ``reason`` is what was wrong with ``rejected``.
    """

    body: InferenceBody = field(repr=False)
    cheap: Decision
    expensive: Decision
    rejected: ReadAnswer = field(repr=False)
    chosen: ReadAnswer = field(repr=False)
    reason: str


class PairSink(Protocol):
    """Takes what may become a preference pair."""

    def offer(self, rescue: Rescue) -> None:
        """Never blocks, never raises."""
        ...


class ShadowSink(Protocol):
    """Takes the answers that a shadow compared."""

    def offer(self, comparison: Comparison) -> None:
        """Never blocks, never raises."""
        ...


class NoJudge:
    """Without one no schema is of use, and nothing is known to be JSON."""

    def refuses(self, schema: SchemaText) -> bool:
        """Always."""
        return True

    async def judge(self, schema: SchemaText | None, text: str) -> SchemaVerdict:
        """Nothing can be said."""
        return SchemaVerdict.BAD_SCHEMA


class NoPairs:
    """Keeps none."""

    def offer(self, rescue: Rescue) -> None:
        """Forgets it."""


class NoShadowLog:
    """Keeps none."""

    def offer(self, comparison: Comparison) -> None:
        """Forgets it."""


NO_JUDGE: Final = NoJudge()
NO_PAIRS: Final = NoPairs()
NO_SHADOW_LOG: Final = NoShadowLog()


class SharedState(Protocol):
    """The way to other routers."""

    @property
    def active(self) -> bool:
        """False when there is none: then nothing has to be put together for ``publish``."""
        ...

    def publish(self, event: SharedEvent) -> None:
        """Tells the others, as far as they can be reached. Never blocks, never raises."""
        ...


class NoSharedState:
    """A router that is alone."""

    active: Final = False

    def publish(self, event: SharedEvent) -> None:
        """Nobody hears it."""


ALONE: Final = NoSharedState()
"""It has no state, so one is enough."""


class LedgerError(RuntimeError):
    """A ledger cannot be opened or read. The message names the file and says why."""


class Ledger(Protocol):
    """Keeps what calls cost. What is booked counts in every sum at once, and is on file when ``flush`` has said so."""

    def book(self, key: Key, usage: Usage, micro_usd: int, *, estimated: bool) -> None:
        """Adds a call that cost ``micro_usd`` (≥ 0). ``estimated``: its tokens are not the engine's own count. Never
        blocks, never raises.
        """
        ...

    def flush(self) -> str:
        """Writes everything that was booked since, all of it or nothing. Returns "", or why it could not: then all of
        it stays booked, and is tried again by the next call. Never raises.
        """
        ...

    def rows(self, dates: Dates) -> list[Row]:
        """One row for each key of these days, in the order of the keys. Raises LedgerError."""
        ...

    def spent(self, day: date) -> dict[str, int]:
        """Micro-dollars of a day by service. Raises LedgerError."""
        ...


class NoLedger:
    """Keeps nothing."""

    def book(self, key: Key, usage: Usage, micro_usd: int, *, estimated: bool) -> None:
        """Forgets it."""

    def flush(self) -> str:
        """There is nothing to write."""
        return ""

    def rows(self, dates: Dates) -> list[Row]:
        """None."""
        return []

    def spent(self, day: date) -> dict[str, int]:
        """Nothing."""
        return {}


NO_LEDGER: Final = NoLedger()


class Telemetry(Protocol):
    """What happened, for metrics and logs. Every call is cheap and never raises."""

    def routed(self, decision: Decision) -> None:
        """A request was given to a backend."""
        ...

    def settled(self, decision: Decision, outcome: Outcome) -> None:
        """A request ended; called once for each that was routed, with the decision of its last attempt."""
        ...

    def charged(self, caller: Caller, backend: str, kind: str, usage: Usage, micro_usd: int) -> None:
        """A call for ``caller`` cost ``micro_usd`` (≥ 0). ``kind`` says what it was made for (``model.money``)."""
        ...

    def budget_action(self, caller: Caller, action: str) -> None:
        """A request of a service whose budget is spent: ``downgrade`` or ``reject``."""
        ...

    def unpriced_call(self, backend: str) -> None:
        """A call that a budget holds for went to a backend without prices."""
        ...

    def rate_limited(self, caller: Caller) -> None:
        """A request was refused, as its service sends too many."""
        ...

    def gate_judged(self, seconds: float) -> None:
        """The quality gate looked at an answer for so long."""
        ...

    def schema_validated(self, verdict: SchemaVerdict) -> None:
        """A text of an answer was judged by the schema of its request."""
        ...

    def gate_concluded(self, quality: Quality, reason: str) -> None:
        """What became of a request that the gate looked at; ``reason`` is one of ``model.gate.Fault``, ``bad_schema``
        or "".
        """
        ...

    def ab_request(self, test: str, variant: str, *, fell_back: bool) -> None:
        """A request of an A/B test ended. ``fell_back``: the caller's variant could not take it."""
        ...

    def shadow_ended(self, test: str, result: ShadowResult) -> None:
        """What became of a request of an A/B test that was drawn for a shadow."""
        ...

    def shadow_similarity(self, test: str, similarity: float) -> None:
        """How alike (0..1) the answers of both variants were."""
        ...

    def failed_over(self, decision: Decision, to: str, reason: str) -> None:
        """The attempt of ``decision`` failed, and the request goes to the backend ``to`` instead."""
        ...

    def retry_budget_exhausted(self, decision: Decision) -> None:
        """A failed attempt was not followed by another, since too many requests are being retried."""
        ...

    def circuit_changed(self, backend: str, *, is_open: bool) -> None:
        """A circuit breaker opened or closed."""
        ...

    def paused(self, backend: str, seconds: float) -> None:
        """A backend asked to be left alone for so long."""
        ...

    def sla_filtered(self, rule: str, backends: tuple[str, ...], *, missed: bool) -> None:
        """Backends were left out as too slow for a rule; ``missed``: all of them were, and the limit was given up."""
        ...

    def pinned(self, backend: str, *, hit: bool) -> None:
        """A request was sent to a backend that is (``hit``) or is not expected to hold a prefix of its prompt."""
        ...

    def cache_reported(self, backend: str, predicted_tokens: int, cached_tokens: int) -> None:
        """An engine said how many prompt tokens its cache held; ``predicted_tokens`` were expected."""
        ...

    def scrape_errors(self, backend: str, count: int) -> None:
        """A metrics page had ``count`` (≥ 1) values that could not be used."""
        ...

    def lost(self, decision: Decision) -> None:
        """An exchange is gone from Envoy but its access log entry never came."""
        ...

    def refused(self, caller: Caller, rejection: Rejection) -> None:
        """router_ext answered a request with an error."""
        ...

    def bypassed(self, record: AccessRecord) -> None:
        """Envoy served a request that no decision belongs to."""
        ...

    def processed(self, seconds: float) -> None:
        """How long Envoy waited for router_ext in one exchange: the sum over its messages."""
        ...

    def fault(self, place: str, error: BaseException) -> None:
        """A bug surfaced at ``place``; Envoy was let go on without the router."""
        ...

    def headers_only(self) -> None:
        """Envoy did not show a body that routing needs: its body mode is one that cannot work."""
        ...

    def health_changed(self, backend: str, health: Health, cause: str) -> None:
        """A backend's health is another than before, or known for the first time."""
        ...

    def session_created(self) -> None:
        """A new session is in the store."""
        ...

    def session_hydrated(self, tokens_saved: int) -> None:
        """A request was continued from a session; the client did not send ``tokens_saved`` (≥ 0) tokens again."""
        ...

    def session_evicted(self, reason: str) -> None:
        """A session is gone: by ``ttl``, ``max_sessions`` or ``max_bytes``, ``lost`` by the store, ``ended`` by its
        client or ``deleted`` by an operator.
        """
        ...

    def session_store_call(self, operation: str, seconds: float, *, ok: bool) -> None:
        """The session store was called; not ``ok``: it brought no answer."""
        ...

    def turn_not_saved(self, reason: str) -> None:
        """A request of a session ended without being kept: the answer ``failed``, ``client_left``, the ``store`` is
        away, or the session is ``gone``.
        """
        ...

    def sessions_active(self, count: int) -> None:
        """So many sessions are in the store."""
        ...

    def shared_published(self, event: str) -> None:
        """An event of this kind was sent to other routers."""
        ...

    def shared_received(self, event: str) -> None:
        """An event of this kind came from another router; ``unreadable`` for what is none."""
        ...

    def shared_dropped(self, count: int) -> None:
        """So many events (≥ 1) were given up before they were sent."""
        ...

    def shared_connected(self, connected: bool, cause: str) -> None:
        """Other routers can be reached, or no longer, and why not."""
        ...

    def reloaded(self, digest: str) -> None:
        """A new configuration is in force."""
        ...

    def reload_refused(self, problem: str) -> None:
        """A changed configuration file was not taken over."""
        ...
