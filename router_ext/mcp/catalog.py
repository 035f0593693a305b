"""Every tool, and the routes of the admin API that none stands on."""

from collections.abc import Mapping
from typing import Final

from router_ext.mcp.changing import CHANGING
from router_ext.mcp.reading import READING
from router_ext.mcp.tool import Tool

TOOLS: Final = (*READING, *CHANGING)

BY_NAME: Final[Mapping[str, Tool]] = {tool.name: tool for tool in TOOLS}

WITHOUT_TOOL: Final[Mapping[tuple[str, str], str]] = {
    ("GET", "/ready"): "for probes; router_health says more",
    ("GET", "/metrics"): "for Prometheus; router_stats says it in short",
    ("GET", "/api/decisions"): "too long for a conversation; router_explain shows one decision",
    ("GET", "/api/budgets"): "router_cost_forecast shows budgets and spending",
    ("DELETE", "/api/budgets/{service}"): "router_update_budget sets any budget",
    ("PUT", "/api/rules/{name}"): "router_remove_rule and router_add_rule",
    ("DELETE", "/api/sessions"): "a client's conversation is not for an assistant to destroy",
}
"""By method and path as in the OpenAPI document, with the reason."""
