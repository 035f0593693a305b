"""The clusters that follow the configuration while Envoy runs: one a backend, and the one for failing open."""

from typing import Any, Final

from envoy_data_plane.envoy.config.cluster.v3 import Cluster, ClusterDiscoveryType, ClusterDnsLookupFamily
from envoy_data_plane.envoy.config.endpoint.v3 import LbEndpoint
from envoy_data_plane.envoy.service.discovery.v3 import DiscoveryResponse
from envoy_data_plane.google.protobuf import Any as PackedMessage

from router_ext.config.sections import RouterConfig, Server
from router_ext.envoygen import upstream
from router_ext.envoygen.endpoints import assignment, endpoint_of
from router_ext.envoygen.fail_open import fail_open_cluster
from router_ext.envoygen.messages import buffer_limit, plain, seconds
from router_ext.envoygen.tls import is_ip, upstream_tls
from router_ext.model.backend import Backend, BackendType

LLAMACPP_REQUESTS_PER_CONNECTION: Final = 90
"""llama.cpp's server closes a connection after 100 requests: Envoy leaves it before."""


def render_clusters(config: RouterConfig) -> dict[str, Any]:
    """The content of the cluster file: a discovery response with one cluster a backend and ``fail-open``.

    Raises CaBundleNotFoundError when a backend uses https and no trusted certificates are found.
    """
    clusters = [backend_cluster(backend, config.server) for backend in config.backends]
    clusters.append(fail_open_cluster(config.fail_open_backends, config.server))
    return plain(DiscoveryResponse(resources=[PackedMessage.pack(cluster) for cluster in clusters]))


def backend_cluster(backend: Backend, server: Server) -> Cluster:
    """The cluster of one backend, under the name that the routing header carries."""
    return Cluster(
        name=backend.cluster,
        type=_discovery(backend),
        dns_lookup_family=ClusterDnsLookupFamily.V4_PREFERRED,
        wait_for_warm_on_init=False if _discovery(backend) is ClusterDiscoveryType.STRICT_DNS else None,
        connect_timeout=seconds(upstream.CONNECT_TIMEOUT_S),
        per_connection_buffer_limit_bytes=buffer_limit(server),
        load_assignment=assignment(backend.cluster, [LbEndpoint(endpoint=endpoint_of(backend))]),
        circuit_breakers=upstream.circuit_breakers(),
        upstream_connection_options=upstream.tcp_keepalive(),
        typed_extension_protocol_options=_protocol(backend),
        transport_socket=upstream_tls(backend.endpoint.host) if backend.endpoint.tls else None,
    )


def _discovery(backend: Backend) -> ClusterDiscoveryType:
    """How the host is found. A provider's name gives a few of many changing addresses: LOGICAL_DNS keeps the
    connections to the earlier ones, STRICT_DNS would drain them at every answer.
    """
    if is_ip(backend.endpoint.host):
        return ClusterDiscoveryType.STATIC
    return ClusterDiscoveryType.LOGICAL_DNS if backend.endpoint.tls else ClusterDiscoveryType.STRICT_DNS


def _protocol(backend: Backend) -> dict[str, PackedMessage]:
    engine = backend.traits.caches_prefixes
    if backend.endpoint.tls:
        return upstream.http_by_alpn(upstream.ENGINE_IDLE_TIMEOUT_S if engine else upstream.CLOUD_IDLE_TIMEOUT_S)
    limit = LLAMACPP_REQUESTS_PER_CONNECTION if backend.type is BackendType.LLAMACPP else None
    return upstream.http1(upstream.ENGINE_IDLE_TIMEOUT_S, limit)
