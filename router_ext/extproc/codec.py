"""Envoy's ext_proc messages to events, and effects to Envoy's messages. The only module that knows their fields."""

from collections.abc import Mapping
from typing import Final, assert_never

from envoy.config.core.v3 import base_pb2
from envoy.extensions.filters.http.ext_proc.v3 import processing_mode_pb2
from envoy.service.ext_proc.v3 import external_processor_pb2 as pb

from router_ext.model.headers import EGRESS_FLAGS, read_flags
from router_ext.stream.effects import (
    Answer,
    BodyReply,
    DuplexBody,
    HeaderEdits,
    HeadersReply,
    ImmediateReply,
    Reply,
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
)

METADATA_NAMESPACE: Final = "router_ext"
"""Namespace of the decision's short form in Envoy's dynamic metadata."""

REFUSAL_DETAILS: Final = "router_ext"
"""Response code details of answers that router_ext gives itself."""

_MODE: Final = processing_mode_pb2.ProcessingMode
_BODY_MODES: Final = {
    _MODE.NONE: BodyMode.NONE,
    _MODE.STREAMED: BodyMode.STREAMED,
    _MODE.BUFFERED: BodyMode.BUFFERED,
    _MODE.BUFFERED_PARTIAL: BodyMode.BUFFERED_PARTIAL,
    _MODE.FULL_DUPLEX_STREAMED: BodyMode.FULL_DUPLEX,
}
_TAKE_OVER: Final = _MODE(response_body_mode=_MODE.FULL_DUPLEX_STREAMED, response_trailer_mode=_MODE.SEND)
_HOLD: Final = _MODE(response_body_mode=_MODE.BUFFERED)
_APPEND: Final = base_pb2.HeaderValueOption.APPEND_IF_EXISTS_OR_ADD
_OVERWRITE: Final = base_pb2.HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD


def event_of(message: pb.ProcessingRequest) -> Event:  # noqa: PLR0911 - one return a message kind
    """The event of one message. Header values are read as Latin-1, which keeps every byte."""
    match message.WhichOneof("request"):
        case "request_headers":
            part = message.request_headers
            return RequestHeaders(_head(part), part.end_of_stream, _modes(message))
        case "request_body":
            return RequestBody(message.request_body.body, message.request_body.end_of_stream)
        case "request_trailers":
            return RequestTrailers()
        case "response_headers":
            return _response_headers(message.response_headers)
        case "response_body":
            return ResponseBody(message.response_body.body, message.response_body.end_of_stream)
        case "response_trailers":
            return ResponseTrailers()
        case _:
            return Unknown()


def _values(part: pb.HttpHeaders) -> dict[str, str]:
    return {item.key: item.raw_value.decode("latin-1") or item.value for item in part.headers.headers}


def _head(part: pb.HttpHeaders) -> RequestHead:
    values = _values(part)
    method, target = values.pop(":method", ""), values.pop(":path", "")
    return RequestHead(method, target, {name: value for name, value in values.items() if name[:1] != ":"})


def _response_headers(part: pb.HttpHeaders) -> ResponseHeaders:
    values = _values(part)
    status = values.get(":status", "")
    return ResponseHeaders(
        int(status) if status.isdigit() else 0,
        values.get("content-type", ""),
        part.end_of_stream,
        values.get("retry-after", ""),
        read_flags(values.get(EGRESS_FLAGS, "")),
    )


def _modes(message: pb.ProcessingRequest) -> Modes | None:
    if not message.HasField("protocol_config"):
        return None
    config = message.protocol_config
    return Modes(
        _BODY_MODES.get(config.request_body_mode, BodyMode.NONE),
        _BODY_MODES.get(config.response_body_mode, BodyMode.NONE),
        config.send_body_without_waiting_for_header_response,
    )


def message_of(reply: Reply) -> pb.ProcessingResponse:
    """Envoy's message for one reply."""
    message = pb.ProcessingResponse()
    match reply:
        case HeadersReply():
            part = message.request_headers if reply.side is Side.REQUEST else message.response_headers
            part.SetInParent()
            _fill_common(message, part, reply)
            if reply.takes_over or reply.holds:
                message.mode_override.CopyFrom(_TAKE_OVER if reply.takes_over else _HOLD)
        case BodyReply():
            part = message.request_body if reply.side is Side.REQUEST else message.response_body
            part.SetInParent()
            _fill_common(message, part, reply)
            if reply.body is not None:
                part.response.body_mutation.body = reply.body
        case DuplexBody():
            part = message.request_body if reply.side is Side.REQUEST else message.response_body
            streamed = part.response.body_mutation.streamed_response
            streamed.body, streamed.end_of_stream = reply.data, reply.end
        case TrailersReply():
            part = message.request_trailers if reply.side is Side.REQUEST else message.response_trailers
            part.SetInParent()
        case Wait():
            message.override_message_timeout.FromMilliseconds(max(1, round(reply.seconds * 1000)))
        case ImmediateReply():
            _fill_answer(message.immediate_response, reply.answer)
        case _:
            assert_never(reply)
    return message


def _fill_common(
    message: pb.ProcessingResponse, part: pb.HeadersResponse | pb.BodyResponse, reply: HeadersReply | BodyReply
) -> None:
    if reply.edits:
        _fill_edits(part.response.header_mutation, reply.edits)
    # Envoy asserts when the response side asks for a new route.
    if reply.reroute and reply.side is Side.REQUEST:
        part.response.clear_route_cache = True
    if reply.metadata:
        _fill_metadata(message, reply.metadata)


def _fill_edits(mutation: pb.HeaderMutation, edits: HeaderEdits) -> None:
    seen: set[str] = set()
    for name, value in edits.set:
        option = mutation.set_headers.add()
        option.header.key = name
        option.header.raw_value = value.encode("latin-1")
        option.append_action = _APPEND if name in seen else _OVERWRITE
        seen.add(name)
    mutation.remove_headers.extend(edits.remove)


def _fill_metadata(message: pb.ProcessingResponse, metadata: Mapping[str, str]) -> None:
    fields = message.dynamic_metadata.fields[METADATA_NAMESPACE].struct_value.fields
    for name, value in metadata.items():
        fields[name].string_value = value


def _fill_answer(response: pb.ImmediateResponse, answer: Answer) -> None:
    response.status.code = answer.status
    response.body = answer.body
    response.details = REFUSAL_DETAILS
    _fill_edits(response.headers, HeaderEdits(answer.headers))
