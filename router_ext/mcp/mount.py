"""``/mcp`` on the admin port: streamable HTTP without sessions, so that restarts and several routers do not matter.

The application's own checks (token, Host, Origin, size) stand in front of it as in front of any path.
"""

from typing import Any, Final

from fastapi import FastAPI
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from router_ext.admin.body_limit import MAX_BODY_BYTES
from router_ext.admin.refusal import refusal
from router_ext.mcp.inside import InsideAdmin
from router_ext.mcp.server import Context, Fault, build_server

PATH: Final = "/mcp"


class McpEndpoint:
    """ASGI application that answers each message by itself, in one JSON body.

    It gives no event stream: no tool has anything to say before its answer, and a GET would hold a connection on which
    nothing ever comes.
    """

    def __init__(self, server: Server[Any]) -> None:
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One message."""
        if scope["method"] != "POST":
            message = "This path takes POST only: there are no sessions and no event streams."
            await refusal(405, "method_not_allowed", message, {"allow": "POST"})(scope, receive, send)
            return
        manager = StreamableHTTPSessionManager(
            self._server, json_response=True, stateless=True, max_request_body_size=MAX_BODY_BYTES
        )
        async with manager.run():
            await manager.handle_request(scope, receive, send)


def serve_mcp(app: FastAPI, fault: Fault) -> None:
    """Adds ``/mcp`` to the admin application, which its tools ask. ``fault`` is as in ``build_server``."""

    def admin_for(context: Context) -> InsideAdmin:
        request = context.request
        assert isinstance(request, Request), "this transport says which request a message came with"
        return InsideAdmin(app, request)

    server = build_server(admin_for, fault)
    app.router.routes.append(Route(PATH, McpEndpoint(server), include_in_schema=False))
