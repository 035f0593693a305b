"""The route tables. The order of the ingress routes decides who may pass while the processor is away."""

from collections.abc import Sequence
from typing import Final

from envoy_data_plane.envoy.config.core.v3 import (
    DataSource,
    HeaderValue,
    HeaderValueOption,
    HeaderValueOptionHeaderAppendAction,
)
from envoy_data_plane.envoy.config.route.v3 import (
    DirectResponseAction,
    HeaderMatcher,
    RetryPolicy,
    RetryPolicyRetryHostPredicate,
    Route,
    RouteAction,
    RouteActionClusterNotFoundResponseCode,
    RouteConfiguration,
    RouteMatch,
    VirtualHost,
)
from envoy_data_plane.envoy.extensions.filters.http.ext_proc.v3 import ExtProcOverrides, ExtProcPerRoute
from envoy_data_plane.envoy.extensions.retry.host.previous_hosts.v3 import PreviousHostsPredicate
from envoy_data_plane.envoy.type.matcher.v3 import StringMatcher
from envoy_data_plane.google.protobuf import Any

from router_ext.config.sections import Server
from router_ext.envoygen import names
from router_ext.envoygen.local_replies import JSON, RETRY_AFTER_S, error_body
from router_ext.envoygen.messages import buffer_limit, seconds
from router_ext.model import headers

RETRY_ON: Final = "connect-failure,refused-stream,reset-before-request"
"""Only failures before the upstream saw the request: a model call is neither idempotent nor cheap."""

CALLER_HEADERS: Final = ["x-envoy-external-address", "x-envoy-internal", "x-forwarded-for"]
"""Added by Envoy on the way in; a backend, which may be someone else's, is not told who calls."""

PRIVATE_HEADERS: Final = sorted(header.name for header in headers.CATALOG)
"""Every header of the product: none goes to a backend, and none that a backend sends goes to a client."""


def ingress_routes(server: Server) -> RouteConfiguration:
    """Routes of the ingress listener: what the processor routed, what cannot be served without it, then the rest."""
    routed = _forwarding(names.ROUTED, server, RouteAction(cluster_header=headers.CLUSTER), [_has(headers.CLUSTER)])
    sessions = [_session_needs_router(name) for name in headers.SESSION_HEADERS]
    fail_open = _forwarding(names.FAIL_OPEN, server, RouteAction(cluster=names.FAIL_OPEN_CLUSTER), [])
    return _table("ingress", server, [_relayed(), routed, *sessions, fail_open])


def egress_routes(server: Server) -> RouteConfiguration:
    """Routes of the egress listener: a cluster by name, nothing else (404), no retries; Envoy's response flags are
    told in a header.
    """
    action = RouteAction(
        cluster_header=headers.CLUSTER,
        cluster_not_found_response_code=RouteActionClusterNotFoundResponseCode.SERVICE_UNAVAILABLE,
        timeout=seconds(0),
        idle_timeout=seconds(server.stream_idle_timeout_s),
        auto_host_rewrite=True,
    )
    route = Route(
        name=names.EGRESS,
        match=_matching([_has(headers.CLUSTER)]),
        route=action,
        request_headers_to_remove=PRIVATE_HEADERS + CALLER_HEADERS,
        response_headers_to_add=[_set(headers.EGRESS_FLAGS, "%RESPONSE_FLAGS%")],
    )
    return _table("egress", server, [route])


def _table(name: str, server: Server, routes: Sequence[Route]) -> RouteConfiguration:
    """``request_body_buffer_limit`` is for HTTP/2: its streams buffer up to their window of 16 MiB, or this if it is
    more, and not up to the listener's limit.
    """
    host = VirtualHost(name="all", domains=["*"], routes=list(routes), request_body_buffer_limit=buffer_limit(server))
    return RouteConfiguration(name=name, virtual_hosts=[host], validate_clusters=False)


def _forwarding(name: str, server: Server, action: RouteAction, conditions: list[HeaderMatcher]) -> Route:
    action.cluster_not_found_response_code = RouteActionClusterNotFoundResponseCode.SERVICE_UNAVAILABLE
    action.timeout = seconds(0)
    action.idle_timeout = seconds(server.stream_idle_timeout_s)
    action.auto_host_rewrite = True
    action.retry_policy = _retries()
    return Route(
        name=name,
        match=_matching(conditions),
        route=action,
        request_headers_to_remove=PRIVATE_HEADERS + CALLER_HEADERS,
        response_headers_to_remove=PRIVATE_HEADERS,
    )


def _retries() -> RetryPolicy:
    """Two more tries, on another endpoint where the cluster has one."""
    another_host = RetryPolicyRetryHostPredicate(
        name="envoy.retry_host_predicates.previous_hosts", typed_config=Any.pack(PreviousHostsPredicate())
    )
    return RetryPolicy(
        retry_on=RETRY_ON, num_retries=2, retry_host_predicate=[another_host], host_selection_retry_max_attempts=3
    )


def _session_needs_router(header: str) -> Route:
    route = _unavailable(names.SESSION_NEEDS_ROUTER, "Sessions are not available at the moment.", _has(header))
    route.typed_per_filter_config = {names.PROCESSOR_FILTER: Any.pack(_failing_closed())}
    return route


def _failing_closed() -> ExtProcPerRoute:
    """A client takes the end of an answer for a turn that is kept: without the processor there is no such end. Envoy
    reads this once, from the route of the client's own request.
    """
    return ExtProcPerRoute(overrides=ExtProcOverrides(failure_mode_allow=False))


def _relayed() -> Route:
    """A request whose answer the router brings: this one is what a client gets when the router dies before."""
    condition = HeaderMatcher(name=headers.CLUSTER, string_match=StringMatcher(exact=headers.RELAY_CLUSTER))
    return _unavailable(names.RELAYED, "The router is not available at the moment.", condition)


def _unavailable(name: str, message: str, condition: HeaderMatcher) -> Route:
    body = error_body(message, "service_unavailable", "router_unavailable")
    return Route(
        name=name,
        match=_matching([condition]),
        direct_response=DirectResponseAction(status=503, body=DataSource(inline_string=body)),
        response_headers_to_add=[_set("content-type", JSON), _set("retry-after", str(RETRY_AFTER_S))],
    )


def _has(header: str) -> HeaderMatcher:
    return HeaderMatcher(name=header, present_match=True)


def _matching(conditions: list[HeaderMatcher]) -> RouteMatch:
    return RouteMatch(prefix="/", headers=conditions)


def _set(name: str, value: str) -> HeaderValueOption:
    return HeaderValueOption(
        header=HeaderValue(key=name, value=value),
        append_action=HeaderValueOptionHeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
    )
