"""What Envoy tells about one HTTP exchange, free of its wire format."""

from collections.abc import Mapping
from enum import Enum, auto

from msgspec import Struct


class BodyMode(Enum):
    """How Envoy hands over a body (``ProcessingMode.BodySendMode``)."""

    NONE = auto()
    STREAMED = auto()
    BUFFERED = auto()
    BUFFERED_PARTIAL = auto()
    FULL_DUPLEX = auto()


class Modes(Struct, frozen=True):
    """The body modes in force. ``body_before_headers``: body messages come before the headers are answered."""

    request: BodyMode = BodyMode.BUFFERED
    response: BodyMode = BodyMode.STREAMED
    body_before_headers: bool = False

    @property
    def holds_headers(self) -> bool:
        """True when the body can be read before the headers are answered."""
        return self.request is BodyMode.FULL_DUPLEX or (self.request is BodyMode.STREAMED and self.body_before_headers)

    @property
    def can_relay(self) -> bool:
        """True when another answer can be sent than the upstream's: Envoy changes the response's mode only while the
        request's is not full-duplex, and not where bodies come before the headers are answered.
        """
        return self.request is not BodyMode.FULL_DUPLEX and not self.body_before_headers

    @property
    def can_follow(self) -> bool:
        """True when each piece of an answer can be seen, and held back, before it goes on."""
        return self.can_relay and self.response is not BodyMode.FULL_DUPLEX


def is_failing(status: int) -> bool:
    """True for an answer that another backend may better: a server error, Envoy's own included, or 429."""
    return status >= 500 or status == 429


class RequestHead(Struct, frozen=True):
    """Method, target and headers of a request. Header names are lower case; pseudo headers are not among them."""

    method: str
    target: str
    headers: Mapping[str, str]

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]


class RequestHeaders(Struct, frozen=True):
    """The request's headers; ``end`` means that no body follows. ``modes`` is None where Envoy did not say."""

    head: RequestHead
    end: bool
    modes: Modes | None = None


class RequestBody(Struct, frozen=True):
    """A piece of the request's body, or all of it in the buffered mode."""

    data: bytes
    end: bool


class RequestTrailers(Struct, frozen=True):
    """The request's trailers: its body is complete."""


class ResponseHeaders(Struct, frozen=True):
    """Status, content type and ``Retry-After`` ("" when missing) of the response; ``end``: no body follows.

    ``flags`` are Envoy's response flags where the answer is its own.
    """

    status: int
    content_type: str
    end: bool
    retry_after: str = ""
    flags: tuple[str, ...] = ()


class ResponseBody(Struct, frozen=True):
    """A piece of the response's body."""

    data: bytes
    end: bool


class ResponseTrailers(Struct, frozen=True):
    """The response's trailers."""


class Unknown(Struct, frozen=True):
    """A message of a kind that this version does not know."""


Event = RequestHeaders | RequestBody | RequestTrailers | ResponseHeaders | ResponseBody | ResponseTrailers | Unknown
