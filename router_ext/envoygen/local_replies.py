"""Envoy's own error answers in the shape that OpenAI clients read.

A local reply that already says its content type is left alone: those are the processor's answers and the direct
responses of the route table.
"""

import json
from typing import Final

from envoy_data_plane.envoy.config.accesslog.v3 import (
    AccessLogFilter,
    AndFilter,
    ComparisonFilter,
    ComparisonFilterOp,
    ExtensionFilter,
    OrFilter,
    StatusCodeFilter,
)
from envoy_data_plane.envoy.config.core.v3 import (
    DataSource,
    HeaderValue,
    HeaderValueOption,
    RuntimeUInt32,
    SubstitutionFormatString,
)
from envoy_data_plane.envoy.extensions.access_loggers.filters.cel.v3 import ExpressionFilter
from envoy_data_plane.envoy.extensions.filters.network.http_connection_manager.v3 import (
    LocalReplyConfig,
    ResponseMapper,
)
from envoy_data_plane.google.protobuf import Any

from router_ext.model import headers

JSON: Final = "application/json"
RETRY_AFTER_S: Final = 2
"""What clients are told while the processor is away."""

_FAILED_CLOSED: Final = "response.code_details.startsWith('ext_proc')"
_UNSHAPED: Final = "!('content-type' in response.headers)"


def error_body(message: str, kind: str, code: str) -> str:
    """An OpenAI-style error as JSON."""
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})


def local_replies() -> LocalReplyConfig:
    """The mappers, of which the first that matches is used. No message tells anything of the upstream."""
    return LocalReplyConfig(
        mappers=[
            _without_processor(),
            _mapper((413,), "The request body is too large.", "invalid_request_error", "body_too_large"),
            _mapper((408, 504), "The request timed out.", "timeout_error", "upstream_timeout"),
            _mapper((502, 503), "No backend could answer.", "service_unavailable", "upstream_unavailable"),
            _mapper((404,), "There is nothing at this address.", "invalid_request_error", "not_found"),
            _catch_all(500, "The request could not be completed.", "api_error", "internal_error"),
            _catch_all(400, "The request was refused.", "invalid_request_error", "bad_request"),
        ]
    )


def _without_processor() -> ResponseMapper:
    """What cannot be served while the processor is away: a turn of a session."""
    body = error_body("Sessions are not available at the moment.", "service_unavailable", "router_unavailable")
    mapper = _shaped(_expression(_FAILED_CLOSED), body)
    mapper.status_code = 503
    mapper.headers_to_add.append(HeaderValueOption(header=HeaderValue(key="retry-after", value=str(RETRY_AFTER_S))))
    return mapper


def _mapper(statuses: tuple[int, ...], message: str, kind: str, code: str) -> ResponseMapper:
    matches = [_status(status, ComparisonFilterOp.EQ) for status in statuses]
    either = AccessLogFilter(or_filter=OrFilter(filters=matches)) if len(matches) > 1 else matches[0]
    return _shaped(either, error_body(message, kind, code))


def _catch_all(lowest: int, message: str, kind: str, code: str) -> ResponseMapper:
    return _shaped(_status(lowest, ComparisonFilterOp.GE), error_body(message, kind, code))


def _shaped(matches: AccessLogFilter, body: str) -> ResponseMapper:
    both = AndFilter(filters=[matches, _expression(_UNSHAPED)])
    return ResponseMapper(
        filter=AccessLogFilter(and_filter=both),
        headers_to_add=[_flags()],
        body_format_override=SubstitutionFormatString(
            text_format_source=DataSource(inline_string=body), content_type=JSON
        ),
    )


def _flags() -> HeaderValueOption:
    """Tells the processor that the answer is Envoy's own, and why."""
    return HeaderValueOption(header=HeaderValue(key=headers.EGRESS_FLAGS, value="%RESPONSE_FLAGS%"))


def _status(status: int, op: ComparisonFilterOp) -> AccessLogFilter:
    value = RuntimeUInt32(default_value=status, runtime_key=f"router_ext.local_reply.{status}")
    return AccessLogFilter(status_code_filter=StatusCodeFilter(comparison=ComparisonFilter(op=op, value=value)))


def _expression(expression: str) -> AccessLogFilter:
    return AccessLogFilter(
        extension_filter=ExtensionFilter(
            name="envoy.access_loggers.extension_filters.cel",
            typed_config=Any.pack(ExpressionFilter(expression=expression)),
        )
    )
