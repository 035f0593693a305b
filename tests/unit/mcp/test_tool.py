"""Arguments of tools as requests of the admin API."""

import pytest

from router_ext.mcp.catalog import BY_NAME
from router_ext.mcp.tool import Json, Request

COSTS, BACKEND, RULE = {"period": "week"}, {"name": "a", "dry_run": True}, {"name": "r", "backends": ["a"]}


@pytest.mark.parametrize(
    ("tool", "arguments", "request_"),
    [
        ("router_health", {}, Request("GET", "/health", {}, None)),
        ("router_costs", COSTS, Request("GET", "/api/costs", {"period": "week"}, None)),
        ("router_sessions", {"limit": 5}, Request("GET", "/api/sessions", {"limit": "5"}, None)),
        ("router_reload", {"dry_run": True}, Request("POST", "/api/config/reload", {"dry_run": "true"}, None)),
        ("router_remove_backend", BACKEND, Request("DELETE", "/api/backends/a", {"dry_run": "true"}, None)),
        ("router_remove_rule", {"name": "a/b?c#d%"}, Request("DELETE", "/api/rules/a%2Fb%3Fc%23d%25", {}, None)),
        ("router_add_rule", {**RULE, "dry_run": False}, Request("POST", "/api/rules", {"dry_run": "false"}, RULE)),
        ("router_drain_backend", {"name": "a"}, Request("POST", "/api/backends/a/drain", {}, None)),
        ("router_drain_backend", {"name": "a", "drain": True}, Request("POST", "/api/backends/a/drain", {}, None)),
        ("router_drain_backend", {"name": "a", "drain": False}, Request("POST", "/api/backends/a/undrain", {}, None)),
        (
            "router_update_budget",
            {"service": "s", "daily_limit_usd": 7.5},
            Request("PUT", "/api/budgets/s", {}, {"daily_limit_usd": 7.5}),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arguments_go_to_their_places(tool: str, arguments: Json, request_: Request) -> None:
    """Names into the path, encoded; the route's own parameters into the query; the rest into the body."""
    assert BY_NAME[tool].request(arguments) == request_
