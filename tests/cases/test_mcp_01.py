"""MCP-01: a client that speaks a newer protocol must be offered a version that the server knows."""

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest
from mcp.server.lowlevel.server import Server
from mcp.types import ListToolsResult, PaginatedRequestParams
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from router_ext.mcp.mount import McpEndpoint
from router_ext.mcp.server import Context
from tests.contract.admin_process import TOKEN, AdminProcess, admin_process

CLIENT = {"capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}


@pytest.fixture(scope="module")
def running() -> Iterator[AdminProcess]:
    """A router with a token."""
    with admin_process({"ROUTER_API_TOKEN": TOKEN}) as started:
        yield started


def post(running: AdminProcess, method: str, params: dict[str, Any] | None = None, **headers: str) -> tuple[int, Any]:
    """Status and JSON of the answer to one message."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)
    message = {"jsonrpc": "2.0", "id": 1, "method": method, **({} if params is None else {"params": params})}
    accept = "application/json, text/event-stream"
    sent = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json", "accept": accept}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("POST", "/mcp", json.dumps(message), {**sent, **named})
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


@pytest.mark.parametrize("asked", ["2099-01-01", "1999-01-01", "soon"])
def test_initialize_with_an_unknown_version_is_answered_with_a_known_one(running: AdminProcess, asked: str) -> None:
    """It needs no header that names a version."""
    status, body = post(running, "initialize", {"protocolVersion": asked, **CLIENT})
    assert (status, body["id"]) == (200, 1)
    assert body["result"]["protocolVersion"] == HANDSHAKE_PROTOCOL_VERSIONS[-1]


@pytest.mark.parametrize("asked", HANDSHAKE_PROTOCOL_VERSIONS)
def test_initialize_with_a_known_version_is_answered_with_that(running: AdminProcess, asked: str) -> None:
    """Old clients stay as they are."""
    assert post(running, "initialize", {"protocolVersion": asked, **CLIENT})[1]["result"]["protocolVersion"] == asked


@pytest.mark.parametrize("version", ["2099-01-01", "nonsense", "2025-03-26, 2025-06-18"])
def test_a_later_request_with_a_version_that_is_not_known_is_refused(running: AdminProcess, version: str) -> None:
    """400, with an error of the protocol."""
    status, body = post(running, "tools/list", mcp_protocol_version=version)
    assert (status, "error" in body) == (400, True)


@pytest.mark.parametrize(
    ("headers", "version"), [({}, "2025-03-26"), ({"mcp-protocol-version": "2025-11-25"}, "2025-11-25")]
)
def test_a_later_request_without_a_version_is_of_march_2025(headers: dict[str, str], version: str) -> None:
    """That is what the tools' server is told; a header says otherwise."""
    seen: list[str] = []

    async def list_tools(context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        seen.append(context.protocol_version)
        return ListToolsResult(tools=[])

    endpoint = McpEndpoint(Server("t", on_list_tools=list_tools))
    client = TestClient(Starlette(routes=[Route("/mcp", endpoint)]))
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert client.post("/mcp", json=message, headers={"accept": "application/json", **headers}).status_code == 200
    assert seen == [version]
