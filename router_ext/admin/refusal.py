"""Errors of the admin API, in the form that clients know from OpenAI."""

from collections.abc import Iterable, Mapping
from typing import Final

from fastapi.responses import JSONResponse

from router_ext.config.problem import Problem

_INVALID: Final = "invalid_request_error"

_TYPES: Final = {
    401: "authentication_error",
    403: "permission_error",
    409: "conflict_error",
    503: "service_unavailable",
}


def refusal(
    status: int,
    code: str,
    message: str,
    headers: Mapping[str, str] | None = None,
    problems: Iterable[Problem] = (),
) -> JSONResponse:
    """An answer with an error body; without ``problems`` it has no list of them. ``message`` quotes no request."""
    error: dict[str, object] = {"message": message, "type": _TYPES.get(status, _INVALID), "param": None, "code": code}
    found = [{"path": problem.path, "line": problem.line, "message": problem.message} for problem in problems]
    if found:
        error["problems"] = found
        error["param"] = found[0]["path"] or None
    return JSONResponse({"error": error}, status, headers)


class RefusedError(Exception):
    """Ends a request with ``refusal``. ``status`` is 400, 401, 403, 404, 409, 413, 422 or 503."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        problems: Iterable[Problem] = (),
    ) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers
        self.problems = tuple(problems)

    def answer(self) -> JSONResponse:
        """The answer."""
        return refusal(self.status, self.code, self.message, self.headers, self.problems)
