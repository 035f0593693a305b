"""The tools over standard input and output."""

from io import TextIOWrapper

import anyio
from mcp.server.stdio import stdio_server
from yarl import URL

from router_ext.mcp.remote import RemoteAdmin
from router_ext.mcp.server import build_server
from router_ext.model.secret import Secret
from router_ext.telemetry.log import get_logger


async def serve_stdio(admin: URL, token: Secret | None, wire_in: TextIOWrapper, wire_out: TextIOWrapper) -> None:
    """Serves one client of the router at ``admin`` until its end of the wire closes."""
    async with (
        RemoteAdmin(admin, token) as remote,
        stdio_server(anyio.wrap_file(wire_in), anyio.wrap_file(wire_out)) as (read, write),
    ):
        server = build_server(lambda _context: remote, _say_fault)
        await server.run(read, write, server.create_initialization_options())


def _say_fault(place: str, error: Exception) -> None:
    get_logger().error("fault", place=place, exc_info=error)
