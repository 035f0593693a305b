"""The cluster that answers while the processor is away: keyless backends of the fallback chain, by weight."""

from collections.abc import Sequence
from typing import Final

from envoy_data_plane.envoy.config.cluster.v3 import (
    Cluster,
    ClusterDiscoveryType,
    ClusterDnsLookupFamily,
    ClusterLbPolicy,
    ClusterTransportSocketMatch,
    OutlierDetection,
)
from envoy_data_plane.envoy.config.core.v3 import (
    HealthCheck,
    HealthCheckHttpHealthCheck,
    HealthCheckTcpHealthCheck,
    Metadata,
)
from envoy_data_plane.envoy.config.endpoint.v3 import LbEndpoint
from envoy_data_plane.google.protobuf import Struct, Value

from router_ext.config.sections import Server
from router_ext.envoygen import upstream
from router_ext.envoygen.endpoints import assignment, endpoint_of
from router_ext.envoygen.messages import buffer_limit, seconds
from router_ext.envoygen.names import FAIL_OPEN_CLUSTER
from router_ext.envoygen.tls import upstream_tls
from router_ext.model.backend import Backend

_SOCKET_MATCH: Final = "envoy.transport_socket_match"
_MAX_WEIGHT: Final = 10_000
"""Keeps the sum of the weights far below Envoy's 2³² whatever ``max_concurrent`` says."""


def fail_open_cluster(backends: Sequence[Backend], server: Server) -> Cluster:
    """The cluster for ``backends``; with none it has no endpoint, and requests get a 503.

    The panic threshold stays at Envoy's 50 %: when most endpoints look unhealthy, all are tried.
    """
    return Cluster(
        name=FAIL_OPEN_CLUSTER,
        type=ClusterDiscoveryType.STRICT_DNS,
        dns_lookup_family=ClusterDnsLookupFamily.V4_PREFERRED,
        wait_for_warm_on_init=False,
        connect_timeout=seconds(upstream.CONNECT_TIMEOUT_S),
        per_connection_buffer_limit_bytes=buffer_limit(server),
        lb_policy=ClusterLbPolicy.LEAST_REQUEST,
        load_assignment=assignment(FAIL_OPEN_CLUSTER, [_endpoint(backend) for backend in backends]),
        circuit_breakers=upstream.circuit_breakers(),
        upstream_connection_options=upstream.tcp_keepalive(),
        typed_extension_protocol_options=upstream.http1(upstream.ENGINE_IDLE_TIMEOUT_S),
        transport_socket_matches=[_tls_for(backend) for backend in backends if backend.endpoint.tls],
        health_checks=[_health_check({backend.health_endpoint for backend in backends}, server)] if backends else [],
        outlier_detection=_outlier_detection(),
    )


def _endpoint(backend: Backend) -> LbEndpoint:
    return LbEndpoint(
        endpoint=endpoint_of(backend),
        load_balancing_weight=min(max(backend.max_concurrent, 1), _MAX_WEIGHT),
        metadata=Metadata(filter_metadata={_SOCKET_MATCH: _socket_key(backend)}) if backend.endpoint.tls else None,
    )


def _tls_for(backend: Backend) -> ClusterTransportSocketMatch:
    return ClusterTransportSocketMatch(
        name=backend.name,
        match=_socket_key(backend),
        transport_socket=upstream_tls(backend.endpoint.host),
    )


def _socket_key(backend: Backend) -> Struct:
    return Struct(fields={"backend": Value(string_value=backend.name)})


def _health_check(paths: set[str], server: Server) -> HealthCheck:
    """An HTTP check where all backends share a health path, else a TCP one: Envoy has one path for a whole cluster."""
    check = HealthCheck(
        timeout=seconds(2),
        interval=seconds(5),
        no_traffic_interval=seconds(server.health_check_interval_s),
        unhealthy_threshold=2,
        healthy_threshold=1,
    )
    if len(paths) == 1:
        check.http_health_check = HealthCheckHttpHealthCheck(path=next(iter(paths)))
    else:
        check.tcp_health_check = HealthCheckTcpHealthCheck()
    return check


def _outlier_detection() -> OutlierDetection:
    """Sets an endpoint aside for 10 s (longer when it happens again) after five failures in a row."""
    return OutlierDetection(
        consecutive_5xx=5,
        split_external_local_origin_errors=True,
        consecutive_local_origin_failure=5,
        base_ejection_time=seconds(10),
        max_ejection_percent=50,
    )
