"""What Envoy tells about one HTTP exchange, free of its wire format."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto


class BodyMode(Enum):
    """How Envoy hands over a body (``ProcessingMode.BodySendMode``)."""

    NONE = auto()
    STREAMED = auto()
    BUFFERED = auto()
    BUFFERED_PARTIAL = auto()
    FULL_DUPLEX = auto()


@dataclass(frozen=True, slots=True)
class Modes:
    """The body modes in force. ``body_before_headers``: body messages come before the headers are answered."""

    request: BodyMode = BodyMode.BUFFERED
    response: BodyMode = BodyMode.STREAMED
    body_before_headers: bool = False

    @property
    def holds_headers(self) -> bool:
        """True when the body can be read before the headers are answered."""
        return self.request is BodyMode.FULL_DUPLEX or (self.request is BodyMode.STREAMED and self.body_before_headers)


@dataclass(frozen=True, slots=True)
class RequestHead:
    """Method, target and headers of a request. Header names are lower case; pseudo headers are not among them."""

    method: str
    target: str
    headers: Mapping[str, str]

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]


@dataclass(frozen=True, slots=True)
class RequestHeaders:
    """The request's headers; ``end`` means that no body follows. ``modes`` is None where Envoy did not say."""

    head: RequestHead
    end: bool
    modes: Modes | None = None


@dataclass(frozen=True, slots=True)
class RequestBody:
    """A piece of the request's body, or all of it in the buffered mode."""

    data: bytes
    end: bool


@dataclass(frozen=True, slots=True)
class RequestTrailers:
    """The request's trailers: its body is complete."""


@dataclass(frozen=True, slots=True)
class ResponseHeaders:
    """Status and content type ("" when missing) of the response; ``end`` means that no body follows."""

    status: int
    content_type: str
    end: bool


@dataclass(frozen=True, slots=True)
class ResponseBody:
    """A piece of the response's body."""

    data: bytes
    end: bool


@dataclass(frozen=True, slots=True)
class ResponseTrailers:
    """The response's trailers."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A message of a kind that this version does not know."""


Event = RequestHeaders | RequestBody | RequestTrailers | ResponseHeaders | ResponseBody | ResponseTrailers | Unknown
