"""The two listeners: ingress for clients, egress for the calls that router_ext makes itself."""

from typing import Final

from envoy_data_plane.envoy.config.common.mutation_rules.v3 import HeaderMutation, HeaderMutationRemoveOnMatch
from envoy_data_plane.envoy.config.core.v3 import (
    CidrRange,
    Http2ProtocolOptions,
    HttpProtocolOptions,
    HttpProtocolOptionsHeadersWithUnderscoresAction,
    TypedExtensionConfig,
)
from envoy_data_plane.envoy.config.listener.v3 import Filter, FilterChain, Listener
from envoy_data_plane.envoy.extensions.filters.network.http_connection_manager.v3 import (
    HttpConnectionManager,
    HttpConnectionManagerInternalAddressConfig,
    HttpConnectionManagerPathWithEscapedSlashesAction,
    HttpConnectionManagerServerHeaderTransformation,
)
from envoy_data_plane.envoy.extensions.http.early_header_mutation.header_mutation.v3 import (
    HeaderMutation as EarlyHeaderMutation,
)
from envoy_data_plane.envoy.type.matcher.v3 import StringMatcher
from envoy_data_plane.google.protobuf import Any

from router_ext.config.sections import Server
from router_ext.envoygen import access_log, names
from router_ext.envoygen.filters import ingress_filters, router_filter
from router_ext.envoygen.local_replies import local_replies
from router_ext.envoygen.messages import buffer_limit, seconds, tcp
from router_ext.envoygen.routes import egress_routes, ingress_routes
from router_ext.model import headers

REQUEST_HEADERS_TIMEOUT_S: Final = 10.0
REQUEST_TIMEOUT_S: Final = 120.0
"""Bounds the upload of a request, not its answer: the largest body in two minutes needs 2.3 Mbit/s."""
HTTP2_STREAMS: Final = 1024
EGRESS_CLOSE_S: Final = 0.02
"""How long Envoy keeps a connection open that it is done with. The router learns of a cut answer only after it, and the
default of a second, against clients far away that still send, has no use on the loopback interface.
"""


def ingress_listener(server: Server) -> Listener:
    """The listener for clients, on all interfaces."""
    manager = _manager("ingress", server)
    manager.route_config = ingress_routes(server)
    manager.http_filters = ingress_filters(server)
    manager.access_log = [access_log.json_lines(names.INGRESS_LOG), *access_log.to_processor(server)]
    manager.early_header_mutation_extensions = [_untrusted_headers()]
    manager.use_remote_address = True
    manager.request_timeout = seconds(REQUEST_TIMEOUT_S)
    return _listener("ingress", "0.0.0.0", server.port, server, manager)  # noqa: S104


def egress_listener(server: Server) -> Listener:
    """The listener for router_ext's own calls, on the loopback interface and outside the connection limit."""
    manager = _manager("egress", server)
    manager.route_config = egress_routes(server)
    manager.http_filters = [router_filter()]
    manager.access_log = [access_log.json_lines(names.EGRESS_LOG)]
    manager.use_remote_address = True
    manager.internal_address_config = _loopback()
    manager.delayed_close_timeout = seconds(EGRESS_CLOSE_S)
    listener = _listener("egress", "127.0.0.1", server.egress_port, server, manager)
    listener.ignore_global_conn_limit = True
    return listener


def _loopback() -> HttpConnectionManagerInternalAddressConfig:
    """Envoy takes ``x-envoy-upstream-rq-timeout-ms`` only from addresses that it is told to be internal."""
    addresses = CidrRange(address_prefix="127.0.0.0", prefix_len=8)
    return HttpConnectionManagerInternalAddressConfig(cidr_ranges=[addresses])


def _manager(name: str, server: Server) -> HttpConnectionManager:
    """What both listeners share: hardening, time limits and the shape of errors.

    A header with an underscore, which some servers read as a hyphen, is dropped: refusing the request would close an
    HTTP/1 connection before the processor has let the error answer pass.
    """
    return HttpConnectionManager(
        stat_prefix=name,
        normalize_path=True,
        merge_slashes=True,
        path_with_escaped_slashes_action=HttpConnectionManagerPathWithEscapedSlashesAction.REJECT_REQUEST,
        common_http_protocol_options=HttpProtocolOptions(
            headers_with_underscores_action=HttpProtocolOptionsHeadersWithUnderscoresAction.DROP_HEADER
        ),
        http2_protocol_options=Http2ProtocolOptions(max_concurrent_streams=HTTP2_STREAMS),
        stream_idle_timeout=seconds(server.stream_idle_timeout_s),
        request_headers_timeout=seconds(REQUEST_HEADERS_TIMEOUT_S),
        server_header_transformation=HttpConnectionManagerServerHeaderTransformation.PASS_THROUGH,
        generate_request_id=True,
        local_reply_config=local_replies(),
    )


def _untrusted_headers() -> TypedExtensionConfig:
    """Removes what only router_ext or Envoy may say, before any filter or route sees it."""
    mutations = [
        HeaderMutation(remove=headers.CLUSTER),
        HeaderMutation(remove=headers.EGRESS_FLAGS),
        HeaderMutation(remove_on_match=HeaderMutationRemoveOnMatch(key_matcher=StringMatcher(prefix="x-envoy-"))),
    ]
    return TypedExtensionConfig(
        name="envoy.http.early_header_mutation.header_mutation",
        typed_config=Any.pack(EarlyHeaderMutation(mutations=mutations)),
    )


def _listener(name: str, host: str, port: int, server: Server, manager: HttpConnectionManager) -> Listener:
    http = Filter(name="envoy.filters.network.http_connection_manager", typed_config=Any.pack(manager))
    return Listener(
        name=name,
        address=tcp(host, port),
        per_connection_buffer_limit_bytes=buffer_limit(server),
        filter_chains=[FilterChain(filters=[http])],
    )
