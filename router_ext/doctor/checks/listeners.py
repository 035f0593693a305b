"""The listeners: where clients come in, and which doors are for this machine only."""

import ipaddress
from collections.abc import Iterator, Sequence
from typing import Final

from router_ext.doctor.finding import Finding
from router_ext.doctor.state import State
from router_ext.doctor.wiring import DEFAULT_BUFFER_BYTES
from router_ext.envoygen.messages import buffer_limit

_HTTP2_WINDOW: Final = 16 << 20
"""What Envoy buffers of an HTTP/2 request where the virtual host says nothing, whatever the listener says."""


def ingress(state: State) -> Sequence[Finding] | None:
    """Something listens for clients."""
    if state.running is None:
        return None
    port = state.config.server.port
    if state.running.wiring.on_port(port):
        return []
    wrong = f"Envoy has no HTTP listener on port {port}"
    return [Finding(wrong, f"give the ingress listener's socket_address `port_value: {port}`, or mend server.port")]


def egress(state: State) -> Sequence[Finding] | None:
    """The router's own way out is there, and routes by the routing header."""
    if state.running is None:
        return None
    port = state.config.server.egress_port
    found = state.running.wiring.on_port(port)
    if not found:
        return [
            Finding(f"Envoy has no HTTP listener on port {port}", "copy listener `egress` of the rendered bootstrap")
        ]
    expected = state.expected.on_port(port)[0].virtual_host.at("routes")
    if all(one.virtual_host.at("routes").same_as(expected) for one in found):
        return []
    wrong = f"the routes of the listener on port {port} are not those that the router needs"
    return [Finding(wrong, "copy `route_config` of listener `egress` from the rendered bootstrap")]


def loopback(state: State) -> Sequence[Finding] | None:
    """What has no login listens on the loopback interface."""
    if state.running is None:
        return None
    return [
        Finding(
            f"{what} listens on {host}, where other machines reach it", f"set its address to 127.0.0.1 (port {port})"
        )
        for what, host, port in _private_doors(state)
        if not _is_loopback(host)
    ]


def _private_doors(state: State) -> Iterator[tuple[str, str, int]]:
    server = state.config.server
    if state.running is None:
        return
    for listener in state.running.wiring.on_port(server.egress_port):
        yield "the egress listener", listener.host, server.egress_port
    if state.running.wiring.admin_host:
        yield "Envoy's admin page", state.running.wiring.admin_host, server.envoy_admin_port


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def body_limits(state: State) -> Sequence[Finding] | None:
    """Bodies up to ``server.max_body_bytes`` pass."""
    if not state.ingress:
        return None
    needed = buffer_limit(state.config.server)
    return [
        Finding(
            f"{where} holds {size:,} bytes of a body, and server.max_body_bytes promises {needed:,} with headroom",
            f"{where}: `{key}: {needed}`",
        )
        for where, key, size in _limits(state)
        if size < needed
    ]


def _limits(state: State) -> Iterator[tuple[str, str, int]]:
    for one in state.ingress:
        yield f"listener {one.name}", "per_connection_buffer_limit_bytes", one.buffer_bytes
        host = one.virtual_host
        route_limit = host.at("request_body_buffer_limit").whole(_HTTP2_WINDOW)
        yield f"virtual host {host.at('name').text}", "request_body_buffer_limit", route_limit
    if state.running is None:
        return
    for name in state.expected.clusters:
        cluster = state.running.wiring.clusters.get(name)
        if cluster is not None:
            size = cluster.at("per_connection_buffer_limit_bytes").whole(DEFAULT_BUFFER_BYTES)
            yield f"cluster {name}", "per_connection_buffer_limit_bytes", size
