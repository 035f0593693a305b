"""Errors of the admin API, in the form that clients know from OpenAI."""

from collections.abc import Mapping
from typing import Final

from fastapi.responses import JSONResponse

_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "invalid_request_error",
    503: "service_unavailable",
}


def refusal(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """An answer with an error body. ``status`` is 400, 401, 403, 404 or 503. ``message`` quotes no request."""
    error = {"message": message, "type": _TYPES[status], "param": None, "code": code}
    return JSONResponse({"error": error}, status, headers)
