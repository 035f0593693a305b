"""What the engine needs from the outside, as Protocols. The shell provides them; tests bring their own."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import date
from typing import Final, Protocol

from router_ext.costs.days import Dates
from router_ext.model.backend import Backend
from router_ext.model.decision import Decision
from router_ext.model.gate import ReadAnswer, SchemaText, SchemaVerdict
from router_ext.model.ledger import Key, Row
from router_ext.model.outcome import Usage
from router_ext.model.session import Session, SessionMeta, Turn
from router_ext.model.shadow import Comparison
from router_ext.model.shared import SharedEvent
from router_ext.payload.inference import InferenceBody
from router_ext.ports.telemetry import Telemetry as Telemetry


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

    async def peek(self, session_id: str, owner: str, now_s: float) -> Session | None:
        """The same as ``load``, but the session does not count as used."""
        ...

    async def append(self, session_id: str, owner: str, turn: Turn, now_s: float) -> bool:
        """Adds a turn as a whole, never in part and never within another turn. False when the session is gone."""
        ...

    async def delete(self, session_id: str, owner: str | None = None) -> bool:
        """Destroys a session, of any owner where none is given. False when it is not there."""
        ...

    async def holds(self, session_id: str) -> bool:
        """Whether a session is there, whoever owns it. It does not count as used."""
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
