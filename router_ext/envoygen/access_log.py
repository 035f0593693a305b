"""What is written of every exchange: JSON lines on standard output, and gRPC entries for the processor's accounts.

Neither holds a query string, a credential or any request header beside the request id.
"""

from typing import Any, Final

from envoy_data_plane.envoy.config.accesslog.v3 import AccessLog, AccessLogFilter, MetadataFilter
from envoy_data_plane.envoy.config.core.v3 import ApiVersion, GrpcService, SubstitutionFormatString
from envoy_data_plane.envoy.extensions.access_loggers.grpc.v3 import CommonGrpcAccessLogConfig, HttpGrpcAccessLogConfig
from envoy_data_plane.envoy.extensions.access_loggers.stream.v3 import StdoutAccessLog
from envoy_data_plane.envoy.type.matcher.v3 import (
    MetadataMatcher,
    MetadataMatcherPathSegment,
    StringMatcher,
    ValueMatcher,
    ValueMatcherNullMatch,
)
from envoy_data_plane.google.protobuf import Any as PackedMessage
from envoy_data_plane.google.protobuf import Struct

from router_ext.config.sections import Server
from router_ext.config.workers import id_prefix
from router_ext.envoygen.messages import seconds
from router_ext.envoygen.names import INGRESS_LOG, PROCESSOR_NAMESPACE, worker_cluster
from router_ext.envoygen.processor import processor_service, service_of

FLUSH_INTERVAL_S: Final = 0.05
BUFFER_BYTES: Final = 1 << 20
"""What Envoy keeps of entries that it cannot deliver yet, a thread and logger; it drops the next ones. About 2,000: a
second of a busy router whose connection has yet to be made.
"""

_FIELDS: Final = {
    "start_time": "%START_TIME%",
    "method": "%REQ(:METHOD)%",
    "path": "%PATH(NQ)%",
    "status": "%RESPONSE_CODE%",
    "flags": "%RESPONSE_FLAGS%",
    "details": "%RESPONSE_CODE_DETAILS%",
    "route": "%ROUTE_NAME%",
    "duration_ms": "%DURATION%",
    "bytes_received": "%BYTES_RECEIVED%",
    "bytes_sent": "%BYTES_SENT%",
    "upstream_cluster": "%UPSTREAM_CLUSTER_RAW%",
    "upstream_host": "%UPSTREAM_HOST%",
    "request_id": "%REQ(X-REQUEST-ID)%",
}
_SAID: Final = ("id", "rule", "backend", "service", "attempts")
_DECISION: Final = {name: f"%DYNAMIC_METADATA({PROCESSOR_NAMESPACE}:{name})%" for name in _SAID}


def json_lines(log_name: str) -> AccessLog:
    """One JSON object a line on standard output, with ``log`` set to ``log_name`` and the processor's decision."""
    fields: dict[str, Any] = {"log": log_name, **_FIELDS, **_DECISION}
    log_format = SubstitutionFormatString(json_format=Struct.from_dict(fields))
    return AccessLog(
        name="envoy.access_loggers.stdout", typed_config=PackedMessage.pack(StdoutAccessLog(log_format=log_format))
    )


def to_processor(server: Server) -> list[AccessLog]:
    """Entries for the processor, sent within 50 ms, with dynamic metadata, flags, times and the route's name.

    Of several workers the one whose decision it was gets an entry, and an entry without a decision goes to any of them.
    """
    if server.workers == 1:
        return [_grpc(processor_service(server))]
    own = [_only(_grpc(service_of(worker_cluster(n))), _of_worker(n)) for n in range(server.workers)]
    return [*own, _only(_grpc(processor_service(server)), _of_nobody())]


def _only(log: AccessLog, condition: MetadataFilter) -> AccessLog:
    log.filter = AccessLogFilter(metadata_filter=condition)
    return log


def _of_worker(worker: int) -> MetadataFilter:
    prefix = ValueMatcher(string_match=StringMatcher(prefix=id_prefix(worker)))
    return MetadataFilter(matcher=_id(prefix), match_if_key_not_found=False)


def _of_nobody() -> MetadataFilter:
    """An id is text, never null: what matches is the entries without one. Envoy ignores ``invert`` here."""
    return MetadataFilter(matcher=_id(ValueMatcher(null_match=ValueMatcherNullMatch())), match_if_key_not_found=True)


def _id(value: ValueMatcher) -> MetadataMatcher:
    return MetadataMatcher(filter=PROCESSOR_NAMESPACE, path=[MetadataMatcherPathSegment(key="id")], value=value)


def _grpc(service: GrpcService) -> AccessLog:
    settings = CommonGrpcAccessLogConfig(
        log_name=INGRESS_LOG,
        transport_api_version=ApiVersion.V3,
        grpc_service=service,
        buffer_flush_interval=seconds(FLUSH_INTERVAL_S),
        buffer_size_bytes=BUFFER_BYTES,
    )
    return AccessLog(
        name="envoy.access_loggers.http_grpc",
        typed_config=PackedMessage.pack(HttpGrpcAccessLogConfig(common_config=settings)),
    )
