"""What every cluster shares: limits, connection care and the upstream protocol."""

from typing import Final

from envoy_data_plane.envoy.config.cluster.v3 import (
    CircuitBreakers,
    CircuitBreakersThresholds,
    UpstreamConnectionOptions,
)
from envoy_data_plane.envoy.config.core.v3 import (
    Http1ProtocolOptions,
    Http2ProtocolOptions,
    HttpProtocolOptions,
    KeepaliveSettings,
    RoutingPriority,
    TcpKeepalive,
)
from envoy_data_plane.envoy.extensions.upstreams.http.v3 import (
    HttpProtocolOptions as UpstreamProtocol,
)
from envoy_data_plane.envoy.extensions.upstreams.http.v3 import (
    HttpProtocolOptionsAutoHttpConfig,
    HttpProtocolOptionsExplicitHttpConfig,
)
from envoy_data_plane.google.protobuf import Any

from router_ext.envoygen.messages import seconds

_PROTOCOL_KEY: Final = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_UNLIMITED: Final = 100_000

CONNECT_TIMEOUT_S: Final = 2.0
ENGINE_IDLE_TIMEOUT_S: Final = 4.0
"""Uvicorn, which serves the engines, closes an idle connection after 5 s: Envoy must be the one that closes first."""
CLOUD_IDLE_TIMEOUT_S: Final = 30.0
"""Providers keep idle connections for a minute or more; a TLS handshake a request is what this saves."""


def circuit_breakers() -> CircuitBreakers:
    """Limits that are never the reason for a refusal: every open stream counts, and Envoy's default is 1,024.

    router_ext bounds the requests in flight to each backend itself.
    """
    return CircuitBreakers(
        thresholds=[
            CircuitBreakersThresholds(
                priority=priority,
                max_connections=_UNLIMITED,
                max_pending_requests=_UNLIMITED,
                max_requests=_UNLIMITED,
                max_retries=_UNLIMITED,
            )
            for priority in (RoutingPriority.DEFAULT, RoutingPriority.HIGH)
        ]
    )


def tcp_keepalive() -> UpstreamConnectionOptions:
    """Finds a dead peer behind a silent connection within a minute."""
    return UpstreamConnectionOptions(
        tcp_keepalive=TcpKeepalive(keepalive_time=30, keepalive_interval=10, keepalive_probes=3)
    )


def http1(idle_timeout_s: float, max_requests_per_connection: int | None = None) -> dict[str, Any]:
    """HTTP/1.1 upstream. ``max_requests_per_connection`` None means no limit."""
    return _protocol(
        UpstreamProtocol(
            common_http_protocol_options=_connection(idle_timeout_s, max_requests_per_connection),
            explicit_http_config=HttpProtocolOptionsExplicitHttpConfig(http_protocol_options=Http1ProtocolOptions()),
        )
    )


def http_by_alpn(idle_timeout_s: float) -> dict[str, Any]:
    """HTTP/2 or HTTP/1.1 as the TLS handshake settles it; HTTP/2 connections are pinged while they carry requests."""
    ping = KeepaliveSettings(interval=seconds(30), timeout=seconds(10))
    return _protocol(
        UpstreamProtocol(
            common_http_protocol_options=_connection(idle_timeout_s, None),
            auto_config=HttpProtocolOptionsAutoHttpConfig(
                http_protocol_options=Http1ProtocolOptions(),
                http2_protocol_options=Http2ProtocolOptions(connection_keepalive=ping),
            ),
        )
    )


def http2() -> dict[str, Any]:
    """HTTP/2 with prior knowledge, without pings."""
    return _protocol(
        UpstreamProtocol(
            explicit_http_config=HttpProtocolOptionsExplicitHttpConfig(http2_protocol_options=Http2ProtocolOptions())
        )
    )


def _connection(idle_timeout_s: float, max_requests: int | None) -> HttpProtocolOptions:
    return HttpProtocolOptions(idle_timeout=seconds(idle_timeout_s), max_requests_per_connection=max_requests)


def _protocol(options: UpstreamProtocol) -> dict[str, Any]:
    return {_PROTOCOL_KEY: Any.pack(options)}
