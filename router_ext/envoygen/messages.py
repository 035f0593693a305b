"""The edge between Envoy's typed messages and plain data."""

from datetime import timedelta
from typing import Any, cast

import betterproto2
from envoy_data_plane.envoy.config.core.v3 import Address, Pipe, SocketAddress

from router_ext.config.sections import Address as ConfigAddress
from router_ext.config.sections import Server, TcpAddress, UnixAddress

HEADROOM_BYTES = 64 * 1024


def plain(message: betterproto2.Message) -> dict[str, Any]:
    """The message as Envoy's JSON form with the proto's own field names; ``Any`` fields keep their ``@type``."""
    return message.to_dict(casing=cast("betterproto2.Casing", _proto_name))


def _proto_name(field: str) -> str:
    """Betterproto takes any function of a name as a casing, whatever its annotation says, and its own snake case makes
    ``consecutive_5_xx`` of ``consecutive_5xx``, which Envoy ignores with a warning.
    """
    return field.rstrip("_")


def seconds(value: float) -> timedelta:
    """A duration of ``value`` seconds."""
    return timedelta(seconds=value)


def tcp(host: str, port: int) -> Address:
    """A TCP address; ``host`` is a name or an IP address without brackets."""
    return Address(socket_address=SocketAddress(address=host, port_value=port))


def address_of(address: ConfigAddress) -> Address:
    """A configured address as Envoy writes it."""
    match address:
        case UnixAddress(path):
            return Address(pipe=Pipe(path=str(path)))
        case TcpAddress(host, port):
            return tcp(host, port)


def buffer_limit(server: Server) -> int:
    """Bytes that Envoy may buffer for one body: the configured maximum with headroom.

    The processor checks the exact limit, so its error body and not Envoy's meets a body that is only a little too big.
    """
    return server.max_body_bytes + HEADROOM_BYTES
