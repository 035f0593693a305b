"""One call of a tool: its arguments checked, the admin API asked, the answer in the form of the tool's schema."""

import json
from collections.abc import Mapping
from typing import Any, Final

from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel, ValidationError

from router_ext.mcp import faults
from router_ext.mcp.port import Admin, AwayError
from router_ext.mcp.tool import Json, Tool

_ERROR: Final = 400


async def answer(tool: Tool, arguments: Mapping[str, Any], admin: Admin) -> CallToolResult:
    """What the tool gives; for whatever goes wrong an answer that is marked as an error and says what to do."""
    try:
        given = _checked(tool.takes, arguments)
    except ValidationError as error:
        return failed(faults.unfit(error))
    asked = tool.request(given)
    try:
        reply = await admin.call(asked.method, asked.path, asked.query, asked.body)
    except AwayError as error:
        return failed(str(error))
    if reply.status >= _ERROR:
        return failed(faults.refused(tool, reply))
    try:
        shown = tool.gives.model_validate(reply.body)
    except ValidationError:
        return failed(faults.of_another_version())
    return _shown(shown.model_dump(mode="json", by_alias=True, exclude_unset=True))


def _checked(form: type[BaseModel], arguments: Mapping[str, Any]) -> Json:
    """The arguments as they were given, which the API reads again. Strict: "false" is not false. Raises
    ValidationError.
    """
    form.model_validate_json(json.dumps(dict(arguments)), strict=True)
    return dict(arguments)


def _shown(body: Json) -> CallToolResult:
    """The text is for clients that do not read structured content."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=body)


def failed(text: str) -> CallToolResult:
    """An answer that is an error."""
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)
