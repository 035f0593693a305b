"""When a chat answer is a tool call, and what that call says."""

import re
from dataclasses import dataclass
from typing import Any

import orjson

from router_ext.demo.sim.answers import split_pieces
from router_ext.demo.sim.exchange import Json
from router_ext.demo.sim.schema_values import example
from router_ext.demo.sim.templates import last_user_text

_INVITATION = re.compile(r"\b(tool|weather)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """One call. The first piece is the function's name, the others are its arguments, as JSON, in word pieces."""

    call_id: str
    pieces: tuple[str, ...]
    finish: str

    def call(self) -> Json:
        """The call as a plain answer holds it."""
        function = {"name": self.pieces[0], "arguments": "".join(self.pieces[1:])}
        return {"id": self.call_id, "type": "function", "function": function}

    def delta(self, index: int) -> Json:
        """What event ``index`` adds: the name, then pieces of the arguments, then nothing."""
        if index == len(self.pieces):
            return {}
        if index:
            return {"content": None, "tool_calls": [{"index": 0, "function": {"arguments": self.pieces[index]}}]}
        head = {"id": self.call_id, "type": "function", "index": 0, "function": {"name": self.pieces[0]}}
        return {"content": None, "tool_calls": [head]}


def write_tool_call(body: Json, token: str, bits: int) -> ToolAnswer | None:
    """The call that answers this chat request, None when it is to be answered in words.

    A call is made when ``tool_choice`` is ``required`` or names a function, or when tools are given, not switched off,
    and the last user message has the word tool or weather. As in vLLM a named function ends with ``stop``.
    Raises SchemaError for parameters that no value fits.
    """
    tools = _functions(body.get("tools"))
    match body.get("tool_choice"):
        case {"function": {"name": str() as name}}:
            function = next((f for f in tools if f.get("name") == name), {"name": name})
            return _call(function, token, bits, "stop")
        case "none":
            return None
        case choice:
            wanted = choice == "required" or _INVITATION.search(last_user_text(body["messages"]))
            return _call(tools[0], token, bits, "tool_calls") if tools and wanted else None


def _functions(tools: Any) -> list[dict[str, Any]]:
    given = [tool.get("function") for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    return [function for function in given if isinstance(function, dict)]


def _call(function: dict[str, Any], token: str, bits: int, finish: str) -> ToolAnswer:
    schema = function.get("parameters") or {"type": "object"}
    arguments = orjson.dumps(example(schema, bits)).decode()
    return ToolAnswer(f"chatcmpl-tool-{token}", (str(function.get("name")), *split_pieces(arguments)), finish)
