"""The SDK's own client, connected to a running router over either transport."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from tests.contract.admin_process import TOKEN, AdminProcess

Transport = Literal["http", "stdio"]
TRANSPORTS: tuple[Transport, ...] = ("http", "stdio")

Mode = Literal["auto", "legacy"]


@asynccontextmanager
async def http_client(url: str, token: str = TOKEN, mode: Mode = "auto", **headers: str) -> AsyncIterator[Client]:
    """A client of ``/mcp``."""
    sent = {"authorization": f"Bearer {token}", **headers}
    async with (
        httpx2.AsyncClient(headers=sent, timeout=30) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


@asynccontextmanager
async def stdio_mcp(admin: str, log: Path, token: str = TOKEN, mode: Mode = "auto") -> AsyncIterator[Client]:
    """A client that has started ``router-ext mcp``; ``log`` gets what that says beside the protocol."""
    argv = ["-m", "router_ext.cli.main", "mcp", "--admin", admin, "--log-level", "debug"]
    parameters = StdioServerParameters(
        command=sys.executable, args=argv, env={"ROUTER_API_TOKEN": token} if token else {}
    )
    with log.open("a") as errors:
        async with Client(stdio_client(parameters, errors), mode=mode) as client:
            yield client


@asynccontextmanager
async def mcp_client(transport: Transport, running: AdminProcess, mode: Mode = "auto") -> AsyncIterator[Client]:
    """A client over this transport."""
    if transport == "http":
        async with http_client(running.url, mode=mode) as client:
            yield client
    else:
        async with stdio_mcp(running.url, running.folder / "mcp.log", mode=mode) as client:
            yield client


def text_of(result: CallToolResult) -> str:
    """What an assistant reads."""
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


async def ask(client: Client, tool: str, **arguments: Any) -> Any:
    """The structured answer of a tool, which the client has checked against the tool's schema."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    return result.structured_content


async def error_of(client: Client, tool: str, **arguments: Any) -> str:
    """The text of a tool's error."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert result.structured_content is None
    return text_of(result)
