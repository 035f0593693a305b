"""Replies of a processor, and scripts that give them, in the words of the fake Envoy's own codec."""

from typing import Final

from envoy_data_plane.envoy.config.core.v3 import HeaderValue, HeaderValueOption, HeaderValueOptionHeaderAppendAction
from envoy_data_plane.envoy.service.ext_proc.v3 import (
    BodyMutation,
    BodyResponse,
    CommonResponse,
    HeaderMutation,
    HeadersResponse,
    ImmediateResponse,
    ProcessingRequest,
    ProcessingResponse,
    StreamedBodyResponse,
    TrailersResponse,
)
from envoy_data_plane.envoy.type.v3 import HttpStatus, StatusCode

from tests.fakes.wire_processor import Script

REFUSAL: Final = ProcessingResponse(
    immediate_response=ImmediateResponse(status=HttpStatus(code=StatusCode.Forbidden), body=b"no")
)


def common(kind: str, response: CommonResponse | None = None) -> ProcessingResponse:
    """A reply to headers or a body."""
    match kind:
        case "request_headers":
            return ProcessingResponse(request_headers=HeadersResponse(response=response))
        case "response_headers":
            return ProcessingResponse(response_headers=HeadersResponse(response=response))
        case "request_body":
            return ProcessingResponse(request_body=BodyResponse(response=response))
        case "response_body":
            return ProcessingResponse(response_body=BodyResponse(response=response))
        case "request_trailers":
            return ProcessingResponse(request_trailers=TrailersResponse())
        case _:
            return ProcessingResponse(response_trailers=TrailersResponse())


def neutral(kind: str, message: ProcessingRequest) -> list[ProcessingResponse]:
    """A processor that changes nothing."""
    return [common(kind)]


def piece(kind: str, data: bytes, end: bool) -> ProcessingResponse:
    """A streamed response."""
    streamed = StreamedBodyResponse(body=data, end_of_stream=end)
    return common(kind, CommonResponse(body_mutation=BodyMutation(streamed_response=streamed)))


def echo(kind: str, message: ProcessingRequest) -> list[ProcessingResponse]:
    """A full-duplex processor that changes nothing."""
    body = message.request_body or message.response_body
    return [common(kind)] if body is None else [piece(kind, body.body, body.end_of_stream)]


def setting(name: str, value: str) -> HeaderMutation:
    """Sets a header."""
    option = HeaderValueOption(
        header=HeaderValue(key=name, raw_value=value.encode()),
        append_action=HeaderValueOptionHeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
    )
    return HeaderMutation(set_headers=[option])


def instead(base: Script, at: str, *replies: ProcessingResponse) -> Script:
    """``base`` with other replies to one kind of message."""
    return lambda kind, message: list(replies) if kind == at else base(kind, message)


def leaving(base: Script, at: str) -> Script:
    """``base`` that ends the stream in the place of one kind of reply."""
    return lambda kind, message: None if kind == at else base(kind, message)
