"""Reading the caller's headers."""

from router_ext.model import headers
from router_ext.model.rejection import Reason, Rejection
from router_ext.model.request import Caller
from router_ext.stream.events import RequestHead

MAX_VALUE = 128
"""Longest value of a caller header, in characters."""

REQUEST_ID = "x-request-id"
"""Envoy gives each request one."""


def read_caller(head: RequestHead) -> Caller | Rejection:
    """The caller as the headers describe it. Values are printable ASCII; the tier is a whole number ≥ 0."""
    if not any(name.startswith(headers.RESERVED_PREFIX) for name in head.headers):
        return _UNNAMED
    texts = [head.headers.get(name, "") for name in _TEXT_HEADERS]
    for name, text in zip(_TEXT_HEADERS, texts, strict=True):
        if len(text) > MAX_VALUE or not (text.isascii() and text.isprintable()):
            message = f"The header {name} must be at most {MAX_VALUE} printable ASCII characters."
            return Rejection(Reason.BAD_HEADER, message, name)
    tier = head.headers.get(headers.TIER, "0").strip() or "0"
    if not (tier.isascii() and tier.isdigit() and len(tier) <= 9):
        return Rejection(Reason.BAD_HEADER, f"The header {headers.TIER} must be a whole number.", headers.TIER)
    service, call_type, priority, persona = texts
    return Caller(service, call_type, priority, int(tier), persona)


def request_id_of(head: RequestHead) -> str:
    """The request's own id, "" where there is none, or none that is 1 to ``MAX_VALUE`` printable ASCII characters."""
    value = head.headers.get(REQUEST_ID, "")
    return value if len(value) <= MAX_VALUE and value.isascii() and value.isprintable() else ""


_UNNAMED = Caller()
_TEXT_HEADERS = (headers.SERVICE, headers.CALL_TYPE, headers.PRIORITY, headers.PERSONA_ID)
