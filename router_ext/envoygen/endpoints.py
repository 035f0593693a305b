"""Backends as Envoy endpoints."""

from collections.abc import Sequence

from envoy_data_plane.envoy.config.endpoint.v3 import (
    ClusterLoadAssignment,
    Endpoint,
    EndpointHealthCheckConfig,
    LbEndpoint,
    LocalityLbEndpoints,
)

from router_ext.envoygen.messages import tcp
from router_ext.model.backend import Backend


def endpoint_of(backend: Backend) -> Endpoint:
    """The backend's address. Its hostname is the authority, so that ``auto_host_rewrite`` works for IP addresses too
    and the port is part of the Host header.
    """
    authority = backend.endpoint.authority
    return Endpoint(
        address=tcp(backend.endpoint.host, backend.endpoint.port),
        hostname=authority,
        health_check_config=EndpointHealthCheckConfig(hostname=authority),
    )


def assignment(cluster: str, endpoints: Sequence[LbEndpoint]) -> ClusterLoadAssignment:
    """The endpoints of a cluster, all in one locality; none gives a cluster that answers 503."""
    localities = [LocalityLbEndpoints(lb_endpoints=list(endpoints))] if endpoints else []
    return ClusterLoadAssignment(cluster_name=cluster, endpoints=localities)
