"""The admin API asked without a network."""

import asyncio
from typing import Any

import pytest
from mcp import Client
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from router_ext.mcp.inside import InsideAdmin
from router_ext.mcp.port import AwayError, Reply
from router_ext.mcp.server import build_server

CALLER: dict[str, Any] = {
    "type": "http",
    "client": ("192.0.2.7", 4711),
    "headers": [
        (b"host", b"router:8052"),
        (b"authorization", b"Bearer t"),
        (b"x-kronaxis-admin-who", b"somebody else"),
    ],
}


async def test_the_application_sees_the_caller_and_nothing_else_of_its_request() -> None:
    """Address, host and token; a name with signs of its own comes as it was written."""
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": b'{"a":' + (await receive())["body"] + b"}"})

    admin = InsideAdmin(app, Request(CALLER))
    assert await admin.call("PUT", "/api/rules/a%2Fb%3F", {"dry_run": "true"}, [1]) == Reply(201, {"a": [1]})
    (scope,) = seen
    assert (scope["method"], scope["path"], scope["raw_path"]) == ("PUT", "/api/rules/a/b?", b"/api/rules/a%2Fb%3F")
    assert (scope["query_string"], scope["client"]) == (b"dry_run=true", ("192.0.2.7", 4711))
    headers = dict(scope["headers"])
    assert headers.pop(b"content-length") == b"3"
    assert headers == {b"host": b"router:8052", b"authorization": b"Bearer t", b"content-type": b"application/json"}


async def test_an_answer_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what that means for a change."""
    monkeypatch.setattr("router_ext.mcp.inside.DEADLINE_S", 0.01)

    async def app(_scope: Scope, _receive: Receive, _send: Send) -> None:
        await asyncio.Event().wait()

    with pytest.raises(AwayError, match="may be done yet"):
        await InsideAdmin(app, Request(CALLER)).call("GET", "/health", {}, None)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_fault_ends_one_call_and_is_told_to_the_log_only(mode: Any) -> None:
    """The client gets no text of it, the server goes on."""
    told: list[tuple[str, Exception]] = []

    class Broken:
        async def call(self, *_request: object) -> Reply:
            raise ZeroDivisionError("a secret")

    server = build_server(lambda _context: Broken(), lambda place, error: told.append((place, error)))
    async with Client(server, mode=mode) as client:
        for _ in range(2):
            result = await client.call_tool("router_health", {})
            assert result.is_error
            assert "secret" not in str(result)
    assert [(place, type(error)) for place, error in told] == [("mcp", ZeroDivisionError)] * 2
