"""The clusters of the processor itself, and the gRPC services that are reached through them.

Several workers share one cluster, in which any of them may be asked, and each has one of its own, for what is meant for
it alone.
"""

from collections.abc import Sequence
from typing import Final

from envoy_data_plane.envoy.config.cluster.v3 import (
    Cluster,
    ClusterCommonLbConfig,
    ClusterDiscoveryType,
    ClusterLbPolicy,
    OutlierDetection,
)
from envoy_data_plane.envoy.config.core.v3 import (
    BackoffStrategy,
    GrpcService,
    GrpcServiceEnvoyGrpc,
    HealthCheck,
    HealthCheckGrpcHealthCheck,
    RetryPolicy,
    RetryPolicyRetryHostPredicate,
)
from envoy_data_plane.envoy.config.endpoint.v3 import Endpoint, LbEndpoint
from envoy_data_plane.envoy.extensions.retry.host.previous_hosts.v3 import PreviousHostsPredicate
from envoy_data_plane.envoy.type.v3 import Percent
from envoy_data_plane.google.protobuf import Any

from router_ext.config.sections import Address, Server, TcpAddress
from router_ext.config.workers import worker_address
from router_ext.envoygen import upstream
from router_ext.envoygen.endpoints import assignment
from router_ext.envoygen.messages import address_of, buffer_limit, seconds
from router_ext.envoygen.names import PROCESSOR_CLUSTER, worker_cluster
from router_ext.envoygen.tls import is_ip

CONNECT_TIMEOUT_S: Final = 0.25

RETRY_ON: Final = "reset"
"""A stream that a worker refused, or that ended with its connection, before the worker's first reply. Until then Envoy
has sent the request's headers only, and what a dead worker decided is lost with it.
"""
_RETRIES: Final = 3
_BACK_OFF_S: Final = (0.001, 0.01)
"""Envoy's own second would be as long as ``message_timeout``."""
_PICKS: Final = 30
"""A dead worker has no open streams and is picked three times in four by LEAST_REQUEST when there are two: after 5 more
picks one retry in six still went to it.
"""
_FAILURES: Final = 3
"""A stream or two that a healthy worker resets are not its death."""


def processor_clusters(server: Server) -> list[Cluster]:
    """The cluster in which any worker may be asked, and where there are several one more for each."""
    addresses = [worker_address(server, worker) for worker in range(server.workers)]
    shared = _shared_cluster(addresses, server)
    if server.workers == 1:
        return [shared]
    return [shared, *(_cluster(worker_cluster(worker), [address], server) for worker, address in enumerate(addresses))]


def _shared_cluster(addresses: Sequence[Address], server: Server) -> Cluster:
    """A panic threshold of 0 makes a processor that fails its health check not be asked at all, so that requests fail
    open at once. HTTP/2 pings are left out: a busy processor that answers them late would lose every stream with its
    connection, and the health check already finds one that is stuck.
    """
    cluster = _cluster(PROCESSOR_CLUSTER, addresses, server)
    balancing = ClusterCommonLbConfig(healthy_panic_threshold=Percent(value=0))
    cluster.common_lb_config = balancing
    cluster.health_checks = [_health_check()]
    if server.workers > 1:
        # By default Envoy's threads hear up to a second late of a worker that is set aside.
        balancing.update_merge_window = seconds(0)
        cluster.lb_policy = ClusterLbPolicy.LEAST_REQUEST
        cluster.outlier_detection = _outlier_detection(server.workers)
    return cluster


def _cluster(name: str, addresses: Sequence[Address], server: Server) -> Cluster:
    """A cluster without a health check, which is asked whenever it can be reached."""
    endpoints = [LbEndpoint(endpoint=Endpoint(address=address_of(address))) for address in addresses]
    return Cluster(
        name=name,
        type=ClusterDiscoveryType.STRICT_DNS if _is_named(server.processor_address) else ClusterDiscoveryType.STATIC,
        connect_timeout=seconds(CONNECT_TIMEOUT_S),
        per_connection_buffer_limit_bytes=buffer_limit(server),
        load_assignment=assignment(name, endpoints),
        circuit_breakers=upstream.circuit_breakers(),
        typed_extension_protocol_options=upstream.http2(),
    )


def _is_named(address: Address) -> bool:
    return isinstance(address, TcpAddress) and not is_ip(address.host)


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


def _outlier_detection(workers: int) -> OutlierDetection:
    """Sets a worker aside for a second or two, within milliseconds of its death, which its health check finds after 2
    to 5 s. Only failures of connections count, not answers. One worker always stays: that nobody is to be asked is for
    the health check to say.
    """
    return OutlierDetection(
        interval=seconds(1),
        base_ejection_time=seconds(1),
        max_ejection_percent=100 * (workers - 1) // workers,
        split_external_local_origin_errors=True,
        consecutive_local_origin_failure=_FAILURES,
        consecutive_5xx=0,
        enforcing_success_rate=0,
        enforcing_local_origin_success_rate=0,
    )


def processor_service(server: Server) -> GrpcService:
    """A gRPC service of any worker. With several, a stream whose worker dies before it has replied goes to another."""
    service = service_of(PROCESSOR_CLUSTER)
    if server.workers > 1:
        service.retry_policy = _retries()
    return service


def service_of(cluster: str) -> GrpcService:
    """A gRPC service of the processor without a deadline: one stream lives as long as the HTTP request."""
    return GrpcService(envoy_grpc=GrpcServiceEnvoyGrpc(cluster_name=cluster), timeout=seconds(0))


def _retries() -> RetryPolicy:
    base_s, longest_s = _BACK_OFF_S
    another_host = RetryPolicyRetryHostPredicate(
        name="envoy.retry_host_predicates.previous_hosts", typed_config=Any.pack(PreviousHostsPredicate())
    )
    return RetryPolicy(
        retry_on=RETRY_ON,
        num_retries=_RETRIES,
        retry_back_off=BackoffStrategy(base_interval=seconds(base_s), max_interval=seconds(longest_s)),
        retry_host_predicate=[another_host],
        host_selection_retry_max_attempts=_PICKS,
    )
