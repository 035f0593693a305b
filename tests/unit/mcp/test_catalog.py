"""The tools as a whole: what an assistant is told of them, and that none is forgotten."""

import re
from pathlib import Path

import jsonschema_rs
import pytest

from router_ext.admin.described import document
from router_ext.mcp.catalog import BY_NAME, TOOLS, WITHOUT_TOOL
from router_ext.mcp.server import listing
from router_ext.mcp.tool import Effect, Tool

PAGE = Path(__file__).parents[3] / "docs" / "mcp.md"

each_tool = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: str(tool.name))

WANTED = {
    "router_health",
    "router_backends",
    "router_costs",
    "router_stats",
    "router_rules",
    "router_config",
    "router_reload",
    "router_add_backend",
    "router_remove_backend",
    "router_add_rule",
    "router_remove_rule",
    "router_update_budget",
    "router_sessions",
    "router_create_session",
    "router_cost_forecast",
    "router_shadow_results",
    "router_backend_queue",
    "router_explain",
    "router_drain_backend",
}


def test_the_tools_are_these() -> None:
    """Each once."""
    assert set(BY_NAME) == WANTED
    assert len(TOOLS) == len(WANTED)


def test_every_route_of_the_api_has_a_tool_or_a_reason_to_have_none() -> None:
    """A route that is added to the API needs a decision here, and one that is gone leaves no tool behind."""
    routes = {(method.upper(), path) for path, item in document()["paths"].items() for method in item}
    by_tools = {(route.method, route.path) for tool in TOOLS for route in tool.routes}
    assert by_tools & WITHOUT_TOOL.keys() == set()
    assert by_tools | WITHOUT_TOOL.keys() == routes


@each_tool
def test_a_tool_tells_what_it_is_for(tool: Tool) -> None:
    """A title, a description of some sentences, a description of every argument that is its own, and all hints."""
    listed = listing(tool)
    assert listed.title
    assert len(listed.description or "") > 150
    hints = listed.annotations
    assert hints is not None
    assert None not in (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
    for name in ("name", "service", "dry_run", "drain", "period", "limit"):
        field = listed.input_schema.get("properties", {}).get(name)
        assert field is None or "description" in field or name == "name", name


@each_tool
def test_schemas_are_json_schemas_of_objects(tool: Tool) -> None:
    """Both. The arguments are closed: an unknown one is an error that says so."""
    listed = listing(tool)
    for schema in (listed.input_schema, listed.output_schema):
        assert schema is not None
        jsonschema_rs.meta.validate(schema)
        assert schema["type"] == "object"
    assert listed.input_schema["additionalProperties"] is False


@each_tool
def test_what_changes_something_can_be_tried(tool: Tool) -> None:
    """``dry_run``, false unless asked for; and only what uses GET or asks for an explanation is read-only."""
    takes_dry_run = listing(tool).input_schema.get("properties", {}).get("dry_run", {})
    assert (takes_dry_run.get("default") is False) == (tool.effect is not Effect.READS)
    reads = all(route.method == "GET" for route in tool.routes) or tool.name == "router_explain"
    assert (tool.effect is Effect.READS) == reads
    assert tool.effect is Effect.READS or all("dry_run" in route.query for route in tool.routes)


@each_tool
def test_a_tool_that_is_named_exists(tool: Tool) -> None:
    """In descriptions and advice."""
    named = re.findall(r"router_[a-z_]+", tool.description + tool.see)
    assert set(named) <= WANTED


def test_the_page_lists_the_tools_as_they_are() -> None:
    """docs/mcp.md has exactly these rows, and one for each route without a tool."""
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert [row for row in rows if row.startswith("| `router_")] == [tool_row(tool) for tool in TOOLS]
    without = [f"| `{method} {path}` | {reason} |" for (method, path), reason in WITHOUT_TOOL.items()]
    assert [row for row in rows if re.match(r"\| `[A-Z]+ /", row)] == without


def tool_row(tool: Tool) -> str:
    """One line of the page."""
    routes = ", ".join(f"`{route.method} {route.path}`" for route in tool.routes)
    marks = [
        text
        for text, holds in (
            ("read-only", tool.effect.read_only),
            ("destructive", tool.effect.destructive),
            ("idempotent", tool.effect.idempotent and not tool.effect.read_only),
            ("open world", tool.open_world),
        )
        if holds
    ]
    return f"| `{tool.name}` | {tool.title} | {routes} | {', '.join(marks) or 'adds only'} |"
