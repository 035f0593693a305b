"""The HTTP filters of the listeners. On the way back an answer meets them in reverse order."""

import betterproto2
from envoy_data_plane.envoy.config.common.mutation_rules.v3 import HeaderMutationRules
from envoy_data_plane.envoy.extensions.filters.http.ext_proc.v3 import (
    ExternalProcessor,
    HeaderForwardingRules,
    MetadataOptions,
    MetadataOptionsMetadataNamespaces,
    ProcessingMode,
    ProcessingModeBodySendMode,
    ProcessingModeHeaderSendMode,
)
from envoy_data_plane.envoy.extensions.filters.http.router.v3 import Router
from envoy_data_plane.envoy.extensions.filters.network.http_connection_manager.v3 import HttpFilter
from envoy_data_plane.envoy.type.matcher.v3 import ListStringMatcher, StringMatcher
from envoy_data_plane.envoy.type.v3 import HttpStatus, StatusCode
from envoy_data_plane.google.protobuf import Any

from router_ext.config.sections import Server
from router_ext.envoygen.answer_reader import answer_framer, answer_reader
from router_ext.envoygen.messages import seconds
from router_ext.envoygen.names import PROCESSOR_FILTER, PROCESSOR_NAMESPACE
from router_ext.envoygen.processor import processor_service
from router_ext.model.backend import API_HEADERS, CREDENTIAL_HEADERS
from router_ext.model.headers import RESERVED_PREFIX

MAX_MESSAGE_TIMEOUT_S = 3600.0
"""The longest that the processor may ask Envoy to wait for one reply."""


def ingress_filters(server: Server) -> list[HttpFilter]:
    """The filters of the ingress listener: the reader stands behind the processor and sees an answer first."""
    return [
        _filter("router_ext.answer_framer", answer_framer()),
        _filter(PROCESSOR_FILTER, ext_proc(server)),
        _filter("router_ext.answer_reader", answer_reader()),
        router_filter(),
    ]


def router_filter() -> HttpFilter:
    """The router without Envoy's own ``x-envoy-*`` response headers; the request timeout header still counts."""
    return _filter("envoy.filters.http.router", Router(suppress_envoy_headers=True))


def ext_proc(server: Server) -> ExternalProcessor:
    """The external processor, failing open.

    BUFFERED requests and STREAMED answers are the body modes under which a dead processor costs no request.
    """
    return ExternalProcessor(
        grpc_service=processor_service(server),
        failure_mode_allow=True,
        status_on_error=HttpStatus(code=StatusCode.ServiceUnavailable),
        allow_mode_override=True,
        message_timeout=seconds(server.message_timeout_s),
        max_message_timeout=seconds(MAX_MESSAGE_TIMEOUT_S),
        processing_mode=ProcessingMode(
            request_header_mode=ProcessingModeHeaderSendMode.SEND,
            response_header_mode=ProcessingModeHeaderSendMode.SEND,
            request_body_mode=ProcessingModeBodySendMode.BUFFERED,
            response_body_mode=ProcessingModeBodySendMode.STREAMED,
            request_trailer_mode=ProcessingModeHeaderSendMode.SKIP,
            response_trailer_mode=ProcessingModeHeaderSendMode.SKIP,
        ),
        forward_rules=HeaderForwardingRules(allowed_headers=_shown_headers()),
        mutation_rules=HeaderMutationRules(allow_all_routing=True, allow_envoy=True, disallow_is_error=False),
        metadata_options=MetadataOptions(
            receiving_namespaces=MetadataOptionsMetadataNamespaces(untyped=[PROCESSOR_NAMESPACE])
        ),
    )


def _shown_headers() -> ListStringMatcher:
    """The headers that the processor reads or decides about; each further one would cost time and tell secrets."""
    read = (":method", ":path", ":status", "content-type", "content-encoding", "accept-encoding", "retry-after")
    patterns = [StringMatcher(exact=name) for name in (*read, "x-request-id", *CREDENTIAL_HEADERS, *API_HEADERS)]
    return ListStringMatcher(patterns=[*patterns, StringMatcher(prefix=RESERVED_PREFIX)])


def _filter(name: str, message: betterproto2.Message) -> HttpFilter:
    return HttpFilter(name=name, typed_config=Any.pack(message))
