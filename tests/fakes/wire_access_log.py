"""Envoy's access log entries and the stream that carries them, by the same independent codec as the fake Envoy."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import grpc
from envoy_data_plane.envoy.config.core.v3 import Address, Metadata, Node, SocketAddress
from envoy_data_plane.envoy.data.accesslog.v3 import (
    AccessLogCommon,
    HttpAccessLogEntry,
    HttpRequestProperties,
    HttpResponseProperties,
    ResponseFlags,
    ResponseFlagsUnauthorized,
)
from envoy_data_plane.envoy.service.accesslog.v3 import (
    StreamAccessLogsMessage,
    StreamAccessLogsMessageHttpAccessLogEntries,
    StreamAccessLogsMessageIdentifier,
)
from envoy_data_plane.google.protobuf import Struct

from tests.fakes.wire_http import Outcome
from tests.fakes.wire_stream import raw_bytes

METHOD: Final = "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs"


@dataclass(frozen=True, slots=True)
class Entry:
    """What an entry says. ``status`` None means that no response began; ``flags`` are fields of ``ResponseFlags``."""

    metadata: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    status: int | None = 200
    route: str = "routed"
    cluster: str = "backend-alpha"
    details: str = "via_upstream"
    reached: bool = True
    flags: tuple[str, ...] = ()
    duration_s: float = 0.25
    last_upstream_byte_s: float | None = 0.2
    request_bytes: int = 10
    response_bytes: int = 20

    def message(self) -> HttpAccessLogEntry:
        """As Envoy sends it."""
        last = self.last_upstream_byte_s
        address = Address(socket_address=SocketAddress(address="10.0.0.1", port_value=8000))
        common = AccessLogCommon(
            upstream_remote_address=address if self.reached else None,
            upstream_cluster=self.cluster,
            route_name=self.route,
            duration=timedelta(seconds=self.duration_s),
            time_to_last_upstream_rx_byte=None if last is None else timedelta(seconds=last),
            metadata=Metadata(
                filter_metadata={name: Struct.from_dict(dict(values)) for name, values in self.metadata.items()}
            ),
            response_flags=_response_flags(self.flags),
        )
        response = HttpResponseProperties(
            response_code=self.status, response_code_details=self.details, response_body_bytes=self.response_bytes
        )
        request = HttpRequestProperties(request_body_bytes=self.request_bytes)
        return HttpAccessLogEntry(common_properties=common, request=request, response=response)


def _response_flags(names: tuple[str, ...]) -> ResponseFlags | None:
    if not names:
        return None
    flags = ResponseFlags()
    for name in names:
        setattr(flags, name, ResponseFlagsUnauthorized() if name == "unauthorized_details" else True)
    return flags


def entry_of(outcome: Outcome, *, usage: Mapping[str, object] | None = None) -> Entry:
    """The entry that Envoy writes at the end of an exchange."""
    metadata: dict[str, Mapping[str, object]] = dict(outcome.metadata)
    if usage is not None:
        metadata["router_ext.usage"] = usage
    if outcome.client is None:
        return Entry(metadata, status=None, details="", flags=("downstream_connection_termination",))
    if outcome.client.immediate:
        return Entry(metadata, outcome.client.status, reached=False, details="router_ext", last_upstream_byte_s=None)
    return Entry(metadata, outcome.client.status)


async def send_access_log(channel: grpc.aio.Channel, entries: Iterable[Entry]) -> None:
    """Sends each entry in a message of its own and waits until the processor has taken them all."""
    call = channel.stream_unary(METHOD, request_serializer=raw_bytes, response_deserializer=raw_bytes)()
    # Envoy names itself in the first message only.
    identifier = StreamAccessLogsMessageIdentifier(node=Node(id="fake-envoy"), log_name="ingress")
    await call.write(bytes(StreamAccessLogsMessage(identifier=identifier)))
    for entry in entries:
        batch = StreamAccessLogsMessageHttpAccessLogEntries(log_entry=[entry.message()])
        await call.write(bytes(StreamAccessLogsMessage(http_logs=batch)))
    await call.done_writing()
    await call
