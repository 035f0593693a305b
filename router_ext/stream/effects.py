"""What the stream machine wants done: replies for Envoy, questions and reports for the engine."""

from collections.abc import Mapping
from enum import Enum, auto

from msgspec import Struct

from router_ext.stream.events import RequestHead, ResponseHeaders


class Side(Enum):
    """Which half of the exchange a reply belongs to."""

    REQUEST = auto()
    RESPONSE = auto()


class HeaderEdits(Struct, frozen=True):
    """Headers to set (replacing any of that name; a name that comes twice has two values) and to remove."""

    set: tuple[tuple[str, str], ...] = ()
    remove: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.set or self.remove)


NO_EDITS = HeaderEdits()


class Forward(Struct, frozen=True):
    """The engine's answer for a request that goes on.

    ``body`` replaces the request's body (None leaves it). ``metadata`` becomes Envoy's dynamic metadata.
    ``response_edits`` are applied when the response comes. ``streaming`` says that the client asked for a stream.
    ``watch`` is false for requests whose response is of no interest. ``failover`` asks for a failing answer to be shown
    to the engine before the client sees anything of it. With ``relay`` the upstream's answer is a placeholder: the
    real one comes from the engine. ``wait_s`` is how long Envoy may have to wait for the engine's answer. With
    ``follow`` the engine sees every piece of a good answer before the client does; ``follow_edits`` are made to the
    headers of such an answer only.
    """

    edits: HeaderEdits = NO_EDITS
    body: bytes | None = None
    metadata: Mapping[str, str] = {}
    response_edits: HeaderEdits = NO_EDITS
    streaming: bool = False
    watch: bool = True
    failover: bool = False
    relay: bool = False
    wait_s: float = 0.0
    follow: bool = False
    follow_edits: HeaderEdits = NO_EDITS


class Answer(Struct, frozen=True):
    """The engine's answer for a request that router_ext answers itself."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


Plan = Forward | Answer


class RelayHead(Struct, frozen=True):
    """Status and headers of the answer that takes the place of the upstream's; ``metadata`` is the new decision's."""

    status: int
    edits: HeaderEdits
    metadata: Mapping[str, str] = {}


class RelayBody(Struct, frozen=True):
    """The next bytes of that answer; ``end`` says that they are the last."""

    data: bytes
    end: bool


Relayed = RelayHead | RelayBody


class Followed(Struct, frozen=True):
    """What becomes of a piece of an answer that is followed.

    ``data`` replaces it (None: it goes on as it is). ``status`` (a held answer only) makes it an error of the router's
    with a JSON body and these ``headers``. ``done``: nothing more needs to be seen. ``kept`` is false for an answer
    after which the session is not there, or not further than before: a held one says nothing of it.
    """

    data: bytes | None = None
    status: int | None = None
    headers: tuple[tuple[str, str], ...] = ()
    done: bool = False
    kept: bool = True


class HeadersReply(Struct, frozen=True):
    """Answers a headers message; a fresh route choice goes with the request side only.

    ``takes_over`` (response side only) makes the body ours from here on: Envoy's own is dropped, and what the client
    gets is sent as ``DuplexBody``. ``holds`` (response side only) makes Envoy hold headers and body until the body,
    which is shown as a whole, is answered.
    """

    side: Side
    edits: HeaderEdits = NO_EDITS
    reroute: bool = False
    metadata: Mapping[str, str] = {}
    takes_over: bool = False
    holds: bool = False


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


class Wait(Struct, frozen=True):
    """Asks Envoy to wait so many seconds (> 0) for the reply that is due. Possible once a message."""

    seconds: float


class ImmediateReply(Struct, frozen=True):
    """Ends the exchange with an answer of our own."""

    answer: Answer


class Ask(Struct, frozen=True):
    """Wants the engine's plan. ``body`` is None when the mode does not show it, so that headers must do.
    ``can_relay`` is false where the body modes leave no way to send another answer than the upstream's, ``can_follow``
    where they leave none to hold its pieces back.
    """

    head: RequestHead
    body: bytes | None
    can_relay: bool = True
    can_follow: bool = True


class AskRelay(Struct, frozen=True):
    """Wants to know whether another answer takes the place of the one that begins with ``seen``."""

    seen: ResponseHeaders


class AskFollow(Struct, frozen=True):
    """Shows the engine a piece of the answer, which does not go on before the engine has answered. ``events`` says
    whether it is an event stream.
    """

    data: bytes
    end: bool
    events: bool


class ReportFirstToken(Struct, frozen=True):
    """The first generated token passed just now."""


class Leave(Struct, frozen=True):
    """Nothing more to see: end the gRPC stream, Envoy goes on alone."""


Reply = HeadersReply | BodyReply | DuplexBody | TrailersReply | ImmediateReply | Wait
Effect = Reply | Ask | AskRelay | AskFollow | ReportFirstToken | Leave
