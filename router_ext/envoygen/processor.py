"""The cluster of the processor itself, and the gRPC services that are reached through it."""

from typing import Final

from envoy_data_plane.envoy.config.cluster.v3 import Cluster, ClusterCommonLbConfig, ClusterDiscoveryType
from envoy_data_plane.envoy.config.core.v3 import (
    GrpcService,
    GrpcServiceEnvoyGrpc,
    HealthCheck,
    HealthCheckGrpcHealthCheck,
)
from envoy_data_plane.envoy.config.endpoint.v3 import Endpoint, LbEndpoint
from envoy_data_plane.envoy.type.v3 import Percent

from router_ext.config.sections import Server, TcpAddress
from router_ext.envoygen import upstream
from router_ext.envoygen.endpoints import assignment
from router_ext.envoygen.messages import address_of, buffer_limit, seconds
from router_ext.envoygen.names import PROCESSOR_CLUSTER
from router_ext.envoygen.tls import is_ip

CONNECT_TIMEOUT_S: Final = 0.25


def processor_cluster(server: Server) -> Cluster:
    """The processor's cluster.

    A panic threshold of 0 makes a processor that fails its health check not be asked at all, so that requests fail open
    at once. HTTP/2 pings are left out: a busy processor that answers them late would lose every stream with its
    connection, and the health check already finds one that is stuck.
    """
    named = isinstance(server.processor_address, TcpAddress) and not is_ip(server.processor_address.host)
    endpoint = LbEndpoint(endpoint=Endpoint(address=address_of(server.processor_address)))
    return Cluster(
        name=PROCESSOR_CLUSTER,
        type=ClusterDiscoveryType.STRICT_DNS if named else ClusterDiscoveryType.STATIC,
        connect_timeout=seconds(CONNECT_TIMEOUT_S),
        per_connection_buffer_limit_bytes=buffer_limit(server),
        load_assignment=assignment(PROCESSOR_CLUSTER, [endpoint]),
        common_lb_config=ClusterCommonLbConfig(healthy_panic_threshold=Percent(value=0)),
        circuit_breakers=upstream.circuit_breakers(),
        typed_extension_protocol_options=upstream.http2(),
        health_checks=[_health_check()],
    )


def _health_check() -> HealthCheck:
    """``no_traffic_interval`` is set because Envoy asks only once a minute while a cluster has had no request."""
    return HealthCheck(
        timeout=seconds(1),
        interval=seconds(1),
        no_traffic_interval=seconds(1),
        unhealthy_threshold=3,
        healthy_threshold=1,
        grpc_health_check=HealthCheckGrpcHealthCheck(),
    )


def processor_service() -> GrpcService:
    """A gRPC service of the processor without a deadline: one stream lives as long as the HTTP request."""
    return GrpcService(envoy_grpc=GrpcServiceEnvoyGrpc(cluster_name=PROCESSOR_CLUSTER), timeout=seconds(0))
