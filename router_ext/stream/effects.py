"""What the stream machine wants done: replies for Envoy, questions and reports for the engine."""

from collections.abc import Mapping
from enum import Enum, auto

from msgspec import Struct

from router_ext.stream.events import RequestHead


class Side(Enum):
    """Which half of the exchange a reply belongs to."""

    REQUEST = auto()
    RESPONSE = auto()


class HeaderEdits(Struct, frozen=True):
    """Headers to set (replacing any of that name) and to remove."""

    set: tuple[tuple[str, str], ...] = ()
    remove: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.set or self.remove)


NO_EDITS = HeaderEdits()


class Forward(Struct, frozen=True):
    """The engine's answer for a request that goes on.

    ``body`` replaces the request's body (None leaves it). ``metadata`` becomes Envoy's dynamic metadata.
    ``response_edits`` are applied when the response comes. ``streaming`` says that the client asked for a stream.
    ``watch`` is false for requests whose response is of no interest.
    """

    edits: HeaderEdits = NO_EDITS
    body: bytes | None = None
    metadata: Mapping[str, str] = {}
    response_edits: HeaderEdits = NO_EDITS
    streaming: bool = False
    watch: bool = True


class Answer(Struct, frozen=True):
    """The engine's answer for a request that router_ext answers itself."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


Plan = Forward | Answer


class HeadersReply(Struct, frozen=True):
    """Answers a headers message; ``metadata`` and a fresh route choice go with the request side only."""

    side: Side
    edits: HeaderEdits = NO_EDITS
    reroute: bool = False
    metadata: Mapping[str, str] = {}


class BodyReply(Struct, frozen=True):
    """Answers a body message in the buffered and streamed modes. ``body`` replaces that message's bytes."""

    side: Side
    edits: HeaderEdits = NO_EDITS
    body: bytes | None = None
    reroute: bool = False
    metadata: Mapping[str, str] = {}


class DuplexBody(Struct, frozen=True):
    """Sends body bytes on in the full-duplex mode, where nothing passes by itself."""

    side: Side
    data: bytes
    end: bool


class TrailersReply(Struct, frozen=True):
    """Answers trailers."""

    side: Side


class ImmediateReply(Struct, frozen=True):
    """Ends the exchange with an answer of our own."""

    answer: Answer


class Ask(Struct, frozen=True):
    """Wants the engine's plan. ``body`` is None when the mode does not show it, so that headers must do."""

    head: RequestHead
    body: bytes | None


class ReportFirstToken(Struct, frozen=True):
    """The first generated token passed just now."""


class Leave(Struct, frozen=True):
    """Nothing more to see: end the gRPC stream, Envoy goes on alone."""


Reply = HeadersReply | BodyReply | DuplexBody | TrailersReply | ImmediateReply
Effect = Reply | Ask | ReportFirstToken | Leave
