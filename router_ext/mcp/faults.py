"""What went wrong, in words that an assistant can act on. They quote no token, no prompt and no argument."""

from collections.abc import Sequence
from typing import Final

from pydantic import ValidationError

from router_ext.admin.access import TOKEN_VARIABLE
from router_ext.admin.errors import problems_of
from router_ext.admin.shapes.errors import ErrorAnswer, ErrorDetail
from router_ext.mcp.port import Reply
from router_ext.mcp.tool import Tool

INSIDE: Final = "The tool failed by an error of its own, which is in the log. Look at the router before you ask again."

_OTHER_VERSION: Final = (
    "The router answers in a form that this MCP server does not know: they are of different versions. Run router-ext "
    "mcp of the router's version (router_health shows it), or use the router's own /mcp."
)
_ADVICE: Final = {
    401: f"Set {TOKEN_VARIABLE}, in the environment that this MCP server is started with, to the router's token.",
    403: "The router does not allow this from here.",
    503: "Try again in a moment; router_health shows the router's state.",
}
_ADVICE_BY_CODE: Final = {
    "not_found": "The router does not know this path: it is of an older version than this tool.",
    "sessions_disabled": "The operator can enable them in router.yaml: server.sessions.enabled.",
    "changes_unusable": "Only somebody with access to the router's disk can mend that.",
    "worker_lost": "router_config shows what is in force.",
    "invalid_host": "Give --admin the router's address as 127.0.0.1 or localhost.",
}
_NAMES: Final = frozenset({404, 409})


def unfit(error: ValidationError) -> str:
    """Arguments that do not have the form of the input schema."""
    found = problems_of(error.errors(include_input=False, include_url=False, include_context=False))
    return "\n".join(["The arguments do not fit; nothing was asked.", *_lines([(p.path, p.message) for p in found])])


def refused(tool: Tool, reply: Reply) -> str:
    """An answer that is an error."""
    error = _error(reply)
    if error is None:
        return f"The router answered with status {reply.status} and no explanation: its log has it."
    advice = _ADVICE_BY_CODE.get(error.code) or _ADVICE.get(reply.status, "")
    if not advice and tool.see and reply.status in _NAMES:
        advice = f"{tool.see} shows what there is."
    problems = _lines([(problem.path, problem.message) for problem in error.problems])
    return "\n".join(part for part in (f"{error.message} ({reply.status} {error.code})", *problems, advice) if part)


def of_another_version() -> str:
    """An answer in a form that the tool does not have."""
    return _OTHER_VERSION


def _error(reply: Reply) -> ErrorDetail | None:
    try:
        return ErrorAnswer.model_validate(reply.body).error
    except ValidationError:
        return None


def _lines(problems: Sequence[tuple[str, str]]) -> list[str]:
    return [f"- {path}: {message}" if path else f"- {message}" for path, message in problems]
