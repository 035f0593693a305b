"""Refusals: every way in which router_ext itself answers a request, with its status and error body."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """Why a request was refused; also the ``reason`` label of the error counter and the ``code`` of the body."""

    BAD_HEADER = "bad_header"
    INVALID_JSON = "invalid_json"
    DUPLICATE_FIELD = "duplicate_field"
    INVALID_MODEL = "invalid_model"
    BAD_ENCODING = "bad_content_encoding"
    UNSUPPORTED_ENCODING = "unsupported_content_encoding"
    BODY_TOO_LARGE = "body_too_large"
    INVALID_MESSAGES = "invalid_messages"
    SESSIONS_DISABLED = "sessions_disabled"
    SESSIONS_UNSUPPORTED = "sessions_unsupported"
    SESSION_NOT_FOUND = "session_not_found"
    SESSION_TOO_LONG = "session_too_long"
    SESSION_STORE_UNAVAILABLE = "session_store_unavailable"
    BUDGET_EXCEEDED = "budget_exceeded"
    RATE_LIMITED = "rate_limited"
    NO_BACKEND = "no_backend"
    UPSTREAM_UNAVAILABLE = "upstream_unavailable"
    UPSTREAM_TIMEOUT = "upstream_timeout"
    QUALITY_GATE = "quality_gate_failed"


@dataclass(frozen=True, slots=True)
class ErrorForm:
    """HTTP status and the ``type`` field of an OpenAI-style error."""

    status: int
    type: str


_INVALID: Final = ErrorForm(400, "invalid_request_error")

ERROR_FORMS: Final[dict[Reason, ErrorForm]] = {
    Reason.BAD_HEADER: _INVALID,
    Reason.INVALID_JSON: _INVALID,
    Reason.DUPLICATE_FIELD: _INVALID,
    Reason.INVALID_MODEL: _INVALID,
    Reason.BAD_ENCODING: _INVALID,
    Reason.UNSUPPORTED_ENCODING: ErrorForm(415, "invalid_request_error"),
    Reason.BODY_TOO_LARGE: ErrorForm(413, "invalid_request_error"),
    Reason.INVALID_MESSAGES: _INVALID,
    Reason.SESSIONS_DISABLED: _INVALID,
    Reason.SESSIONS_UNSUPPORTED: _INVALID,
    Reason.SESSION_NOT_FOUND: ErrorForm(404, "invalid_request_error"),
    Reason.SESSION_TOO_LONG: ErrorForm(413, "invalid_request_error"),
    Reason.SESSION_STORE_UNAVAILABLE: ErrorForm(503, "service_unavailable"),
    Reason.BUDGET_EXCEEDED: ErrorForm(429, "insufficient_quota"),
    Reason.RATE_LIMITED: ErrorForm(429, "rate_limit_error"),
    Reason.NO_BACKEND: ErrorForm(503, "service_unavailable"),
    Reason.UPSTREAM_UNAVAILABLE: ErrorForm(503, "service_unavailable"),
    Reason.UPSTREAM_TIMEOUT: ErrorForm(504, "timeout_error"),
    Reason.QUALITY_GATE: ErrorForm(502, "upstream_error"),
}


@dataclass(frozen=True, slots=True)
class Rejection:
    """A refusal of one request.

    ``message`` is for the client: it quotes no content of the body. ``param`` names the offending field, if one does.
    ``retry_after_s`` (whole seconds, ≥ 1) becomes a ``Retry-After`` header.
    """

    reason: Reason
    message: str
    param: str | None = None
    retry_after_s: int | None = None

    @property
    def status(self) -> int:
        """The HTTP status to answer with."""
        return ERROR_FORMS[self.reason].status

    def body(self) -> dict[str, dict[str, str | None]]:
        """The answer's body: ``{"error": {"message", "type", "param", "code"}}``."""
        kind = ERROR_FORMS[self.reason].type
        return {
            "error": {"message": self.message, "type": kind, "param": self.param, "code": self.reason.value},
        }
