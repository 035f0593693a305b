"""Sessions in the way of requests: hydrating what a turn sends, and keeping what it was answered."""

import uuid
from collections.abc import Awaitable, Callable
from typing import Final

import orjson
from msgspec.structs import replace

from router_ext.config.sections import Server
from router_ext.engine.configured import Configured
from router_ext.engine.known_prompts import KnownPrompts
from router_ext.engine.turns import OpenTurn
from router_ext.model import headers
from router_ext.model.outcome import Usage
from router_ext.model.rejection import Reason, Rejection
from router_ext.model.request import VISION
from router_ext.model.session import Session
from router_ext.payload.envelope import Envelope
from router_ext.payload.inference import InferenceBody
from router_ext.payload.session_request import ContinueSession, SessionWish
from router_ext.payload.tokens import TokenRatio
from router_ext.payload.transcript import fresh_messages, hydrated_envelope, read_messages
from router_ext.payload.vision import holds_image
from router_ext.ports import Clock, SessionStore, SessionStoreError, Telemetry
from router_ext.stream.effects import Followed, HeaderEdits

RETRY_AFTER_S: Final = 2
"""What a client is told while the store is away."""

STORE_AWAY: Final = Rejection(
    Reason.SESSION_STORE_UNAVAILABLE, "Sessions are not available at the moment.", retry_after_s=RETRY_AFTER_S
)
Load = Callable[[str, str, float], Awaitable[Session | None]]
"""How a session is read: ``SessionStore.load`` or ``peek``."""

_UNKNOWN: Final = Rejection(Reason.SESSION_NOT_FOUND, "There is no such session.")
_UNSAVED: Final = orjson.dumps(STORE_AWAY.body())
_UNSAVED_ANSWER: Final = Followed(
    _UNSAVED, STORE_AWAY.status, (("retry-after", str(RETRY_AFTER_S)),), done=True, kept=False
)
_UNSAVED_EVENT: Final = b"data: " + _UNSAVED + b"\n\ndata: [DONE]\n\n"


class Sessions:
    """Opens turns and keeps them. ``store`` is the source of truth: nothing of a session is remembered here."""

    def __init__(self, store: SessionStore, telemetry: Telemetry, clock: Clock) -> None:
        self._store = store
        self._telemetry = telemetry
        self._clock = clock
        self._ratio = TokenRatio()
        self._known = KnownPrompts()

    async def open(
        self, wish: SessionWish, owner: str, body: InferenceBody, now: Configured, *, peeks: bool = False
    ) -> OpenTurn | Rejection:
        """The turn that a request asks for, with the body to send. It only ``peeks`` for a request that is not sent:
        the session does not count as used, and nothing is told of it.
        """
        load = self._store.peek if peeks else self._store.load
        messages = read_messages(body.envelope)
        if isinstance(messages, Rejection):
            return messages
        try:
            if not isinstance(wish, ContinueSession):
                return await self._begun(owner, body, messages, now, load)
            session = await load(wish.session_id, owner, self._clock.wall())
        except SessionStoreError:
            return STORE_AWAY
        if session is None:
            return _UNKNOWN
        turn = self._continued(wish, session, body, messages, now)
        if isinstance(turn, OpenTurn) and not peeks:
            turn.start = self._known.get(turn.session_id, turn.sent)
            self._telemetry.session_hydrated(turn.known_tokens)
        return turn

    async def _begun(
        self, owner: str, body: InferenceBody, messages: tuple[bytes, ...], now: Configured, load: Load
    ) -> OpenTurn | Rejection:
        """The first turn of a new session. Raises SessionStoreError."""
        size = self._estimate(body, messages)
        turn = OpenTurn(_new_id(), owner, body, messages, 0, size, creates=True, sent=messages)
        too_long = _too_long(turn, now.config.server)
        if too_long is None:
            # Shows that the store is there: nobody is to wait for an answer that cannot be kept.
            await load(turn.session_id, owner, self._clock.wall())
        return too_long or turn

    def _continued(
        self, wish: ContinueSession, session: Session, body: InferenceBody, messages: tuple[bytes, ...], now: Configured
    ) -> OpenTurn | Rejection:
        fresh = fresh_messages(messages, session.messages)
        if isinstance(fresh, Rejection):
            return fresh
        whole = _with(body, hydrated_envelope(body.envelope, session.messages, fresh), now)
        if isinstance(whole, Rejection):
            return whole
        meta, size = session.meta, self._estimate(body, fresh.new)
        sent = (*fresh.instructions, *session.messages, *fresh.new)
        turn = OpenTurn(meta.id, meta.owner, whole, fresh.new, meta.tokens, size, ends=wish.ends, sent=sent)
        return _too_long(turn, now.config.server) or turn

    def _estimate(self, body: InferenceBody, messages: tuple[bytes, ...]) -> int:
        return self._ratio.estimate(body.request.model, sum(map(len, messages)))

    async def follow(self, turn: OpenTurn, piece: bytes, *, end: bool, events: bool) -> Followed:
        """Takes a piece of the answer. The turn is kept before its last piece goes on; where that fails the client
        gets an error in its place.
        """
        answer = turn.answered(events=events)
        ready = answer.feed(piece, end=end)
        data = None if ready == piece else ready
        if turn.settled or not (end or answer.complete):
            return Followed(data)
        message = answer.message()
        if message is None:
            turn.settled = True
            self._telemetry.turn_not_saved("failed")
            return Followed(data, done=True, kept=False)
        acknowledged = await self._keep(turn, message, answer.usage)
        turn.settled = True
        if not acknowledged:
            return Followed(_UNSAVED_EVENT) if events else _UNSAVED_ANSWER
        return Followed(data, done=True)

    async def _keep(self, turn: OpenTurn, message: bytes, usage: Usage | None) -> bool:
        """False when the store is away."""
        now_s = self._clock.wall()
        self._learn(turn, usage)
        try:
            if turn.ends:
                kept = await self._store.delete(turn.session_id, turn.owner)
            elif turn.creates:
                await self._store.create(turn.session_id, turn.owner, turn.turn(message, usage), now_s)
                kept = True
                self._telemetry.session_created()
            else:
                kept = await self._store.append(turn.session_id, turn.owner, turn.turn(message, usage), now_s)
        except SessionStoreError:
            self._telemetry.turn_not_saved("store")
            return False
        if not kept:
            self._telemetry.turn_not_saved("gone")
        elif turn.ends:
            self._telemetry.session_evicted("ended")
        else:
            turn.kept = message
            if turn.chain_end is not None:
                self._known.put(turn.session_id, turn.sent, turn.chain_end)
        return True

    def _learn(self, turn: OpenTurn, usage: Usage | None) -> None:
        span = turn.body.envelope.spans["messages"]
        if usage is not None and usage.prompt_tokens:
            self._ratio.observe(turn.body.request.model, span.end - span.start, usage.prompt_tokens)

    def ended(self, turn: OpenTurn, *, client_left: bool) -> None:
        """The request ended, whatever became of its answer."""
        if not turn.settled:
            turn.settled = True
            self._telemetry.turn_not_saved("client_left" if client_left else "failed")


def edits_of(turn: OpenTurn) -> HeaderEdits:
    """What a good answer's headers say of the session."""
    told = ((headers.SESSION_ID, turn.session_id), (headers.SESSION_TOKENS, str(turn.tokens)))
    return HeaderEdits(told)


def _new_id() -> str:
    return f"sess_{uuid.uuid4()}"


def _with(body: InferenceBody, envelope: Envelope | Rejection, now: Configured) -> InferenceBody | Rejection:
    if isinstance(envelope, Rejection):
        return envelope
    if len(envelope.raw) > now.limits.max_bytes:
        message = f"The session and the new messages are larger than {now.limits.max_bytes} bytes."
        return Rejection(Reason.BODY_TOO_LARGE, message)
    # The stored messages may hold an image that the new ones do not.
    sees = now.limits.content_type and holds_image(envelope)
    content_type = VISION if sees else body.request.content_type
    request = replace(body.request, content_type=content_type, prompt_bytes=len(envelope.raw))
    return replace(body, request=request, envelope=envelope, hydrated=True)


def _too_long(turn: OpenTurn, server: Server) -> Rejection | None:
    limit = server.sessions.max_context_tokens
    if turn.tokens <= limit:
        return None
    message = f"The context would have about {turn.tokens} tokens; a session may have {limit}."
    return Rejection(Reason.SESSION_TOO_LONG, message, "messages")
