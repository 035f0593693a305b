"""Envoy's ext_proc messages, built and read by a codec that shares nothing with the processor's own."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import betterproto2
from envoy_data_plane.envoy.config.core.v3 import (
    HeaderMap,
    HeaderValue,
    HeaderValueOption,
    HeaderValueOptionHeaderAppendAction,
)
from envoy_data_plane.envoy.extensions.filters.http.ext_proc.v3 import (
    ProcessingMode,
    ProcessingModeBodySendMode,
    ProcessingModeHeaderSendMode,
)
from envoy_data_plane.envoy.service.ext_proc.v3 import (
    BodyMutation,
    BodyResponse,
    CommonResponse,
    HeaderMutation,
    HeadersResponse,
    HttpBody,
    HttpHeaders,
    HttpTrailers,
    ImmediateResponse,
    ProcessingRequest,
    ProcessingResponse,
    ProtocolConfiguration,
    TrailersResponse,
)

from tests.fakes.wire_http import Client, HeaderList, Pairs

Mode = ProcessingModeBodySendMode

REQUEST: Final = "request"
RESPONSE: Final = "response"

WAIT: Final = "override_message_timeout"
"""The kind of a message that answers nothing, but asks for more time."""

_LONGEST_WAIT: Final = timedelta(hours=1)
"""The filter's ``max_message_timeout``; Envoy ignores more, and less than a millisecond."""

_TAKE_OVER: Final = ProcessingMode(
    response_body_mode=Mode.FULL_DUPLEX_STREAMED, response_trailer_mode=ProcessingModeHeaderSendMode.SEND
)
"""The response's body becomes the processor's."""

_HOLD: Final = ProcessingMode(response_body_mode=Mode.BUFFERED)
"""Headers and body of the response wait for the reply to the body. No other override is of use to the processor."""


class ProtocolViolation(AssertionError):  # noqa: N818 - a failed expectation of a test
    """The processor did what Envoy answers with an error, or what would cut or double a body."""


@dataclass(frozen=True, slots=True)
class ProcessingModes:
    """The filter's modes. ``before_headers`` is ``send_body_without_waiting_for_header_response``."""

    request: Mode = Mode.BUFFERED
    response: Mode = Mode.STREAMED
    before_headers: bool = False

    def __str__(self) -> str:
        return f"{self.request.name}{'+early' if self.before_headers else ''}-{self.response.name}"

    def config(self) -> ProtocolConfiguration:
        """As the first message of a stream carries them."""
        return ProtocolConfiguration(
            request_body_mode=self.request,
            response_body_mode=self.response,
            send_body_without_waiting_for_header_response=self.before_headers,
        )


def header_map(headers: HeaderList) -> HeaderMap:
    """Values go as raw bytes, as Envoy sends them."""
    return HeaderMap(
        headers=[HeaderValue(key=name, raw_value=value.encode("latin-1")) for name, value in headers.pairs]
    )


def headers_message(side: str, headers: HeaderList, end: bool, modes: ProcessingModes | None) -> ProcessingRequest:
    """A headers message; ``modes`` go with the first message of a stream only."""
    part = HttpHeaders(headers=header_map(headers), end_of_stream=end)
    config = None if modes is None else modes.config()
    if side == REQUEST:
        return ProcessingRequest(request_headers=part, protocol_config=config)
    return ProcessingRequest(response_headers=part, protocol_config=config)


def body_message(side: str, data: bytes, end: bool) -> ProcessingRequest:
    """A body message."""
    part = HttpBody(body=data, end_of_stream=end)
    return ProcessingRequest(request_body=part) if side == REQUEST else ProcessingRequest(response_body=part)


def trailers_message(side: str, trailers: Pairs) -> ProcessingRequest:
    """A trailers message."""
    part = HttpTrailers(trailers=header_map(HeaderList(trailers)))
    return ProcessingRequest(request_trailers=part) if side == REQUEST else ProcessingRequest(response_trailers=part)


def kind_of(message: ProcessingRequest) -> str:
    """The name of what a message shows, for example ``request_body``."""
    return betterproto2.which_one_of(message, "request")[0]


@dataclass(frozen=True, slots=True)
class Reply:
    """One message of the processor. ``kind`` is the name of the message that it answers, ``immediate_response`` or
    ``WAIT``.
    """

    kind: str
    message: ProcessingResponse

    @classmethod
    def parse(cls, raw: bytes) -> "Reply":
        """Reads a reply. Refuses a reply of no kind, and overrides that Envoy ignores wherever they stand."""
        message = ProcessingResponse.parse(raw)
        kind = betterproto2.which_one_of(message, "response")[0]
        if message.override_message_timeout is not None:
            return cls._waiting(kind, message, message.override_message_timeout)
        if not kind:
            raise ProtocolViolation("a reply of no kind")
        if message.mode_override not in (None, _TAKE_OVER, _HOLD):
            raise ProtocolViolation(f"{kind}: a mode override to {message.mode_override}")
        return cls(kind, message)

    @classmethod
    def _waiting(cls, kind: str, message: ProcessingResponse, wait: timedelta) -> "Reply":
        if kind or message.mode_override is not None or message.dynamic_metadata is not None:
            raise ProtocolViolation(f"{kind or WAIT}: a reply beside a timeout override")
        if not timedelta(milliseconds=1) <= wait <= _LONGEST_WAIT:
            raise ProtocolViolation(f"a timeout override of {wait}")
        return cls(WAIT, message)

    @property
    def wait_s(self) -> float:
        """How long Envoy is to wait, 0 for a reply that is one."""
        wait = self.message.override_message_timeout
        return 0.0 if wait is None else wait.total_seconds()

    @property
    def takes_over(self) -> bool:
        """True when the response's body is the processor's from here on."""
        return self.message.mode_override == _TAKE_OVER

    @property
    def holds(self) -> bool:
        """True when headers and body are to wait for the reply to the body."""
        return self.message.mode_override == _HOLD

    @property
    def common(self) -> CommonResponse:
        """The part that replies to headers and bodies share; empty when it is missing."""
        match betterproto2.which_one_of(self.message, "response")[1]:
            case (
                HeadersResponse(response=CommonResponse() as common) | BodyResponse(response=CommonResponse() as common)
            ):
                return common
            case TrailersResponse(header_mutation=mutation):
                return CommonResponse(header_mutation=mutation)
            case _:
                return CommonResponse()

    @property
    def mutation(self) -> BodyMutation | None:
        """The change of the body, if any."""
        return self.common.body_mutation

    def metadata(self) -> dict[str, dict[str, object]]:
        """The dynamic metadata by namespace."""
        struct = self.message.dynamic_metadata
        return {} if struct is None else struct.to_dict()

    def client(self) -> Client:
        """What the client gets of an immediate response."""
        answer = self.message.immediate_response
        assert isinstance(answer, ImmediateResponse)
        headers = HeaderList((("content-type", "text/plain"), ("content-length", str(len(answer.body)))))
        apply_edits(headers, answer.headers)
        status = 200 if answer.status is None else int(answer.status.code)
        return Client(status, headers, answer.body, immediate=True)


def apply_edits(headers: HeaderList, mutation: HeaderMutation | None) -> None:
    """Removes, then sets, as Envoy does. Names must be lower case, and a value stands in one of two fields."""
    if mutation is None:
        return
    for name in mutation.remove_headers:
        if name.startswith(":") or name == "host":
            raise ProtocolViolation(f"removes {name}")
        headers.remove(name)
    for option in mutation.set_headers:
        _set(headers, option)


def _set(headers: HeaderList, option: HeaderValueOption) -> None:
    header = option.header
    if header is None or header.key != header.key.lower() or (header.value and header.raw_value):
        raise ProtocolViolation(f"a malformed header edit: {option}")
    value = header.raw_value.decode("latin-1") or header.value
    match option.append_action:
        case HeaderValueOptionHeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD:
            headers.overwrite(header.key, value)
        case HeaderValueOptionHeaderAppendAction.APPEND_IF_EXISTS_OR_ADD:
            headers.add(header.key, value)
        case action:
            raise ProtocolViolation(f"an append action that nobody uses here: {action}")
