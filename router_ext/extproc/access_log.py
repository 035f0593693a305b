"""Envoy's access log stream: the end of every exchange."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Final, TypeVar

import grpc
from envoy.data.accesslog.v3 import accesslog_pb2 as log_pb
from envoy.service.accesslog.v3 import als_pb2 as pb
from envoy.service.accesslog.v3 import als_pb2_grpc as pb_grpc
from google.protobuf import duration_pb2, struct_pb2

from router_ext.engine.engine import Engine
from router_ext.engine.exchanges import Settled
from router_ext.extproc.codec import METADATA_NAMESPACE
from router_ext.model.outcome import AccessRecord, StreamEnd, Usage
from router_ext.ports import Telemetry
from router_ext.stream.words import COUNTS, usage_of

USAGE_NAMESPACE: Final = "router_ext.usage"
"""Namespace of the dynamic metadata into which Envoy puts the token counts of an answer, and how a stream ended."""

_FLAGS: Final = {
    "failed_local_healthcheck": "LH",
    "no_healthy_upstream": "UH",
    "upstream_request_timeout": "UT",
    "local_reset": "LR",
    "upstream_remote_reset": "UR",
    "upstream_connection_failure": "UF",
    "upstream_connection_termination": "UC",
    "upstream_overflow": "UO",
    "no_route_found": "NR",
    "delay_injected": "DI",
    "fault_injected": "FI",
    "rate_limited": "RL",
    "unauthorized_details": "UAEX",
    "rate_limit_service_error": "RLSE",
    "downstream_connection_termination": "DC",
    "upstream_retry_limit_exceeded": "URX",
    "stream_idle_timeout": "SI",
    "invalid_envoy_request_headers": "IH",
    "downstream_protocol_error": "DPE",
    "upstream_max_stream_duration_reached": "UMSDR",
    "response_from_cache_filter": "RFCF",
    "no_filter_config_found": "NFCF",
    "duration_timeout": "DT",
    "upstream_protocol_error": "UPE",
    "no_cluster_found": "NC",
    "overload_manager": "OM",
    "dns_resolution_failure": "DF",
    "downstream_remote_reset": "DR",
}
"""Fields of ``ResponseFlags`` and the short names that Envoy's documentation and text logs use."""


_COUNTED: Final = frozenset(COUNTS.values())

_STREAM_ENDS: Final = {end.value: end for end in StreamEnd}

_MAX_COUNT: Final = 1 << 53

_Spaces = Mapping[str, struct_pb2.Struct]

S = TypeVar("S")
T = TypeVar("T")


class AccessLog(pb_grpc.AccessLogServiceServicer):  # type: ignore[misc]
    """The ``envoy.service.accesslog.v3.AccessLogService`` service."""

    def __init__(self, engine: Engine, telemetry: Telemetry) -> None:
        self._engine = engine
        self._telemetry = telemetry

    async def StreamAccessLogs(  # noqa: N802 - the name is Envoy's
        self,
        messages: AsyncIterator[pb.StreamAccessLogsMessage],
        context: grpc.aio.ServicerContext[pb.StreamAccessLogsMessage, pb.StreamAccessLogsResponse],
    ) -> pb.StreamAccessLogsResponse:
        """Settles every entry of the stream, which lasts as long as Envoy's connection."""
        async for message in messages:
            self._settle(message.http_logs.log_entry)
        return pb.StreamAccessLogsResponse()

    def _settle(self, entries: Iterable[log_pb.HTTPAccessLogEntry]) -> None:
        """All entries of a message are written to the ledger at once: a flush costs as much as the rest of settling."""
        settled = [done for entry in entries if (done := self._guarded(self._end, entry)) is not None]
        self._guarded(self._flush, None)
        for done in settled:
            self._guarded(self._engine.tell, done)

    def _end(self, entry: log_pb.HTTPAccessLogEntry) -> Settled | None:
        return self._engine.end(record_of(entry))

    def _flush(self, _: None) -> None:
        self._engine.charges.flush()

    def _guarded(self, step: Callable[[S], T], subject: S) -> T | None:
        try:
            return step(subject)
        except Exception as error:  # noqa: BLE001 - one bad entry must not end the stream of all others
            self._telemetry.fault("access_log", error)
            return None


def record_of(entry: log_pb.HTTPAccessLogEntry) -> AccessRecord:
    """One entry, reduced to what settling needs."""
    common, response = entry.common_properties, entry.response
    spaces = common.metadata.filter_metadata
    last_byte = common.time_to_last_upstream_rx_byte
    return AccessRecord(
        decision_id=_text(spaces, METADATA_NAMESPACE, "id"),
        route=common.route_name,
        cluster=common.upstream_cluster,
        status=response.response_code.value,
        details=response.response_code_details,
        upstream_reached=common.HasField("upstream_remote_address"),
        flags=tuple(_FLAGS[field.name] for field, _ in common.response_flags.ListFields() if field.name in _FLAGS),
        duration_s=_seconds(common.duration),
        last_upstream_byte_s=_seconds(last_byte) if common.HasField("time_to_last_upstream_rx_byte") else None,
        request_bytes=entry.request.request_body_bytes,
        response_bytes=response.response_body_bytes,
        usage=_usage(spaces),
        stream_end=_STREAM_ENDS.get(_text(spaces, USAGE_NAMESPACE, "stream_end"), StreamEnd.UNKNOWN),
    )


def _text(spaces: _Spaces, namespace: str, name: str) -> str:
    # A look-up in a protobuf map creates what is missing: ask first.
    if namespace not in spaces or name not in spaces[namespace].fields:
        return ""
    return str(spaces[namespace].fields[name].string_value)


def _usage(spaces: _Spaces) -> Usage | None:
    if USAGE_NAMESPACE not in spaces:
        return None
    fields = spaces[USAGE_NAMESPACE].fields
    return usage_of({name: _count(fields[name].number_value) for name in _COUNTED if name in fields})


def _count(number: float) -> int:
    """A backend may report anything: what cannot be a count of tokens is none."""
    return int(number) if 0 <= number <= _MAX_COUNT else 0


def _seconds(duration: duration_pb2.Duration) -> float:
    return float(duration.seconds) + float(duration.nanos) / 1e9
