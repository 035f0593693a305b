"""The machine for one exchange: which reply each message of Envoy gets, in every body mode.

Envoy's rules that this table keeps: one reply for each headers, trailers and (buffered or streamed) body message; in
the full-duplex mode every byte must be sent on by us; the route is chosen anew only by request-side replies; the stream
may be left at any time, except in full-duplex, where leaving would cut the body.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final, assert_never

from router_ext.model.headers import EGRESS_FLAGS, OF_A_BODY
from router_ext.stream.effects import (
    NO_EDITS,
    Answer,
    Ask,
    AskFollow,
    AskRelay,
    BodyReply,
    DuplexBody,
    Effect,
    Followed,
    Forward,
    HeaderEdits,
    HeadersReply,
    ImmediateReply,
    Leave,
    Plan,
    RelayBody,
    Relayed,
    RelayHead,
    Reply,
    ReportFirstToken,
    Side,
    TrailersReply,
    Wait,
)
from router_ext.stream.events import (
    BodyMode,
    Event,
    Modes,
    RequestBody,
    RequestHead,
    RequestHeaders,
    RequestTrailers,
    ResponseBody,
    ResponseHeaders,
    ResponseTrailers,
    Unknown,
    is_failing,
)
from router_ext.stream.sse import SseReader, holds_token


class Phase(Enum):
    """How far the exchange is."""

    START = auto()
    BODY = auto()
    DECIDING = auto()
    SENT = auto()
    ANSWER = auto()
    RELAY = auto()
    FOLLOW = auto()


class _Held(Enum):
    """Which message waits for the engine's plan."""

    HEADERS = auto()
    BODY = auto()
    ALL = auto()


_LOOK_BYTES: Final = 1024

NO_HEADERS: Final = Answer(
    400,
    (("content-type", "application/json"),),
    b'{"error":{"message":"The processor was not shown the request headers.","type":"invalid_request_error",'
    b'"param":null,"code":"bad_header"}}',
)


NOT_KEPT: Final = (
    b'{"error":{"message":"The turn could not be kept.","type":"api_error","param":null,"code":"internal_error"}}'
)

TOO_LARGE: Final = Answer(
    502,
    (("content-type", "application/json"),),
    b'{"error":{"message":"The answer is too large to be held.","type":"api_error","param":null,'
    b'"code":"answer_too_large"}}',
)
"""Instead of an answer over the body limit that would have to be held as a whole."""


class Exchange:
    """One exchange. Call ``receive`` for each message and do the effects in order; an ``Ask`` is followed by ``plan``
    (or ``bail``), whose effects come next. An ``AskRelay`` is followed by ``relayed`` for each part of the answer, and
    by ``end_relay``, an ``AskFollow`` by ``followed``.
    """

    def __init__(self, wants_body: Callable[[RequestHead], bool], max_body_bytes: int) -> None:
        self._wants_body = wants_body
        self._max_body = max_body_bytes
        self._modes = Modes()
        self._phase = Phase.START
        self._held = _Held.HEADERS
        self._head: RequestHead | None = None
        self._chunks: list[bytes] = []
        self._size = 0
        self._trailers = False
        self._passed_on = False
        self._forward = Forward()
        self._sse: SseReader | None = None
        self._events = False
        self._holds = False
        self._seen: ResponseHeaders | None = None
        self._collected: tuple[RelayHead, list[bytes]] | None = None

    def receive(self, event: Event) -> list[Effect]:  # noqa: PLR0911 - one return a message kind
        """The effects of Envoy's next message."""
        match event:
            case RequestHeaders():
                return self._request_headers(event)
            case RequestBody():
                return self._request_body(event)
            case RequestTrailers():
                return self._request_trailers()
            case ResponseHeaders():
                return self._response_headers(event)
            case ResponseBody():
                return self._response_body(event)
            case ResponseTrailers():
                return [TrailersReply(Side.RESPONSE), *self._leave()]
            case Unknown():
                return [Leave()]
            case _:
                assert_never(event)

    def plan(self, plan: Plan) -> list[Effect]:
        """The effects of the engine's plan."""
        self._phase = Phase.SENT
        if isinstance(plan, Answer):
            return [ImmediateReply(plan), Leave()]
        self._forward = plan
        match self._held:
            case _Held.HEADERS:
                return self._release_headers(plan)
            case _Held.BODY:
                return [_body_reply(plan)]
            case _Held.ALL:
                return self._release_all(plan)
            case _:
                assert_never(self._held)

    @property
    def following(self) -> bool:
        """True while pieces of an answer wait for the engine."""
        return self._phase is Phase.FOLLOW

    def bail(self) -> list[Effect]:
        """The effects that let Envoy go on by itself after a fault of ours, with nothing changed.

        Only an answer that is followed becomes an error: the client would take it for kept.
        """
        if self._phase is Phase.DECIDING:
            return self.plan(Forward())
        if self._phase is Phase.FOLLOW:
            event = Followed(b"data: " + NOT_KEPT + b"\n\ndata: [DONE]\n\n")
            return [*self.followed(event if self._events else Followed(NOT_KEPT, 500, kept=False)), Leave()]
        return self.end_relay() if self._phase is Phase.RELAY else []

    # Request side

    def _request_headers(self, event: RequestHeaders) -> list[Effect]:
        self._modes = event.modes or self._modes
        self._head = event.head
        self._passed_on = event.end
        wanted = self._wants_body(event.head)
        if event.end or not wanted or self._modes.request is BodyMode.NONE:
            return self._ask(_Held.HEADERS, b"" if event.end or not wanted else None)
        if self._modes.holds_headers:
            self._phase = Phase.BODY
            return []
        if self._modes.request is BodyMode.STREAMED:
            # The body comes only after this reply has released the headers: they must do.
            return self._ask(_Held.HEADERS, None)
        self._phase = Phase.BODY
        return [HeadersReply(Side.REQUEST)]

    def _request_body(self, event: RequestBody) -> list[Effect]:
        if self._phase is Phase.START:
            return [ImmediateReply(NO_HEADERS), Leave()]
        if self._phase is not Phase.BODY:
            return self._late_body(event)
        self._chunks.append(event.data)
        self._size += len(event.data)
        if self._size > self._max_body:
            return self._ask_whole()
        if self._modes.holds_headers:
            return self._ask_whole() if event.end else []
        if self._modes.request is BodyMode.BUFFERED_PARTIAL and not event.end:
            return self._ask(_Held.BODY, None)
        return self._ask(_Held.BODY, event.data)

    def _late_body(self, event: RequestBody) -> list[Effect]:
        """A body message after the decision: the rest of a streamed body, or a repeated last message."""
        if self._modes.request is not BodyMode.FULL_DUPLEX:
            return [BodyReply(Side.REQUEST)]
        if self._passed_on:
            return []
        self._passed_on = event.end
        return [DuplexBody(Side.REQUEST, event.data, event.end)]

    def _request_trailers(self) -> list[Effect]:
        if self._phase is Phase.BODY and self._modes.holds_headers:
            self._trailers = True
            return self._ask_whole()
        self._passed_on = True
        return [TrailersReply(Side.REQUEST)]

    def _ask_whole(self) -> list[Effect]:
        held = _Held.ALL if self._modes.holds_headers else _Held.BODY
        return self._ask(held, b"".join(self._chunks))

    def _ask(self, held: _Held, body: bytes | None) -> list[Effect]:
        assert self._head is not None
        self._phase, self._held = Phase.DECIDING, held
        return [Ask(self._head, body, self._modes.can_relay, self._modes.can_follow)]

    def _release_headers(self, plan: Forward) -> list[Effect]:
        reply = HeadersReply(Side.REQUEST, plan.edits, reroute=bool(plan.edits), metadata=plan.metadata)
        duplex = BodyMode.FULL_DUPLEX in (self._modes.request, self._modes.response)
        return [reply] if plan.watch or duplex else [reply, Leave()]

    def _release_all(self, plan: Forward) -> list[Effect]:
        """Headers first, then the body that was held back."""
        edits = HeaderEdits(plan.edits.set, (*plan.edits.remove, "content-length"))
        headers = HeadersReply(Side.REQUEST, edits, reroute=bool(plan.edits), metadata=plan.metadata)
        rest: list[Effect] = [TrailersReply(Side.REQUEST)] if self._trailers else []
        if self._modes.request is BodyMode.FULL_DUPLEX:
            self._passed_on = True
            body = plan.body if plan.body is not None else b"".join(self._chunks)
            return [headers, DuplexBody(Side.REQUEST, body, end=not self._trailers), *rest]
        return [headers, *self._streamed_bodies(plan), *rest]

    def _streamed_bodies(self, plan: Forward) -> list[BodyReply]:
        """One reply a chunk; a new body takes the place of the first, the others become empty."""
        if plan.body is None:
            return [BodyReply(Side.REQUEST) for _ in self._chunks]
        return [BodyReply(Side.REQUEST, body=b"" if i else plan.body) for i in range(len(self._chunks))]

    # Response side

    def _response_headers(self, event: ResponseHeaders) -> list[Effect]:
        forward = self._forward
        if self._modes.can_relay and (forward.relay or (forward.failover and is_failing(event.status))):
            self._phase, self._seen = Phase.RELAY, event
            return [Wait(forward.wait_s), AskRelay(event)]
        return self._pass_on(event)

    def relayed(self, part: Relayed) -> list[Reply | Leave]:
        """The effects of the next part of the answer that takes the upstream's place: its head comes first."""
        if self._collected is not None:
            return self._collect(*self._collected, part)
        if not isinstance(part, RelayHead):
            return [DuplexBody(Side.RESPONSE, part.data, part.end)]
        seen, self._seen = self._seen, None
        if seen is not None and seen.end:
            self._collected, self._size = (part, []), 0
            return []
        set_headers = ((":status", str(part.status)), *part.edits.set)
        edits = HeaderEdits(set_headers, part.edits.remove)
        return [HeadersReply(Side.RESPONSE, edits, metadata=part.metadata, takes_over=True)]

    def end_relay(self) -> list[Effect]:
        """The effects after the last part. Without any part the upstream's answer goes on as it is."""
        seen, self._seen = self._seen, None
        return [Leave()] if seen is None else self._pass_on(seen)

    def _collect(self, head: RelayHead, pieces: list[bytes], part: Relayed) -> list[Reply | Leave]:
        """Where the upstream's answer is headers only, no body can follow them: ours goes as one whole answer."""
        assert isinstance(part, RelayBody)
        pieces.append(part.data)
        self._size += len(part.data)
        if self._size > self._max_body:
            return [ImmediateReply(TOO_LARGE), Leave()]
        return [ImmediateReply(Answer(head.status, head.edits.set, b"".join(pieces)))] if part.end else []

    def _pass_on(self, event: ResponseHeaders) -> list[Effect]:
        self._phase = Phase.ANSWER
        edits = self._forward.response_edits
        if event.flags:
            edits = HeaderEdits(edits.set, (*edits.remove, EGRESS_FLAGS))
        if self._forward.follow and 200 <= event.status < 300 and not event.end:
            return self._follow(event, edits)
        effects: list[Effect] = [HeadersReply(Side.RESPONSE, edits)]
        if event.end:
            return [*effects, *self._leave()]
        if self._modes.response is BodyMode.FULL_DUPLEX:
            self._watch_for_token(event)
            return effects
        if self._modes.response is BodyMode.STREAMED and self._watch_for_token(event):
            return effects
        return [*effects, *self._leave()]

    def _follow(self, event: ResponseHeaders, edits: HeaderEdits) -> list[Effect]:
        """An event stream is followed as it passes where Envoy shows it so; any other answer is held until all of it is
        there.
        """
        self._phase = Phase.FOLLOW
        more = self._forward.follow_edits
        both = HeaderEdits((*edits.set, *more.set), (*edits.remove, *more.remove))
        self._events = _is_events(event, self._forward)
        self._holds = not (self._events and self._modes.response is BodyMode.STREAMED)
        return [HeadersReply(Side.RESPONSE, both, holds=self._holds)]

    def followed(self, followed: Followed) -> list[Effect]:
        """The effects of the engine's answer to an ``AskFollow``."""
        reply = BodyReply(Side.RESPONSE, self._edits_of(followed) if self._holds else NO_EDITS, followed.data)
        return [reply, Leave()] if followed.done else [reply]

    def _edits_of(self, followed: Followed) -> HeaderEdits:
        """What the headers of a held answer say of another body, and no more of a session that was not kept."""
        told = followed.headers
        removed = () if followed.kept else tuple(name for name, _ in self._forward.follow_edits.set)
        if followed.status is not None:
            told = ((":status", str(followed.status)), ("content-type", "application/json"), *told)
        if followed.data is not None:
            told, removed = (*told, ("content-length", str(len(followed.data)))), (*OF_A_BODY, *removed)
        return HeaderEdits(told, removed)

    def _leave(self) -> list[Effect]:
        """A backend may answer before the request has ended: in full-duplex the rest still goes through here."""
        return [] if self._modes.request is BodyMode.FULL_DUPLEX and not self._passed_on else [Leave()]

    def _watch_for_token(self, event: ResponseHeaders) -> bool:
        """Only a good event stream has a first token to wait for."""
        if event.status == 200 and _is_events(event, self._forward):
            self._sse = SseReader()
        return self._sse is not None

    def _response_body(self, event: ResponseBody) -> list[Effect]:
        if self._phase is Phase.FOLLOW:
            # A held body is shown once, and trailers may come behind it.
            return [AskFollow(event.data, event.end or self._holds, self._events)]
        effects: list[Effect] = []
        if self._sse is not None and _first_token_in(self._sse, event.data):
            effects.append(ReportFirstToken())
            self._sse = None
        if self._modes.response is BodyMode.FULL_DUPLEX:
            leave = self._leave() if event.end else []
            return [*effects, DuplexBody(Side.RESPONSE, event.data, event.end), *leave]
        done = event.end or self._sse is None
        return [*effects, BodyReply(Side.RESPONSE), *(self._leave() if done else [])]


def _is_events(event: ResponseHeaders, forward: Forward) -> bool:
    """True for an event stream; some servers leave its content type out."""
    unnamed = not event.content_type and forward.streaming
    return unnamed or event.content_type.lower().startswith("text/event-stream")


def _first_token_in(reader: SseReader, chunk: bytes) -> bool:
    """True when a token is complete. Looks no further: a fast engine puts a whole answer into one chunk."""
    pieces = (chunk[at : at + _LOOK_BYTES] for at in range(0, len(chunk), _LOOK_BYTES))
    return any(holds_token(data) for piece in pieces for data in reader.feed(piece))


def _body_reply(plan: Forward) -> BodyReply:
    """In the buffered mode a replaced body needs its own content-length, or Envoy answers 500."""
    edits = plan.edits
    if plan.body is not None:
        edits = HeaderEdits((*edits.set, ("content-length", str(len(plan.body)))), edits.remove)
    return BodyReply(Side.REQUEST, edits, plan.body, reroute=bool(plan.edits), metadata=plan.metadata)


__all__ = ["NO_EDITS", "Exchange", "Phase"]
