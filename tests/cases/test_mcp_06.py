"""MCP-06: what keeps a connection alive must be a comment, never an empty message, and a client must bear both."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.contract.admin_process import TOKEN, AdminProcess, admin_process

RESULT = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "0"}}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def running() -> Iterator[AdminProcess]:
    """A router with a token."""
    with admin_process({"ROUTER_API_TOKEN": TOKEN}) as started:
        yield started


@pytest.mark.parametrize("accept", ["application/json, text/event-stream", "application/json", "*/*"])
def test_the_server_has_no_stream_to_keep_alive(running: AdminProcess, accept: str) -> None:
    """Every answer is one JSON body, whatever the client would take; a GET for a stream is refused."""
    message = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\nAccept: {accept}\r\nConnection: close\r\n"
    posted = f"POST /mcp HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: {len(message)}\r\n\r\n"
    headers, _, body = running.raw(posted.encode() + message).partition(b"\r\n\r\n")
    assert headers.startswith(b"HTTP/1.1 200 ")
    assert b"content-type: application/json" in headers.lower()
    assert json.loads(body)["id"] == 1
    got = running.raw(f"GET /mcp HTTP/1.1\r\n{head}\r\n".encode())
    assert got.startswith(b"HTTP/1.1 405 ")
    assert b"event-stream" not in got


async def test_the_client_of_the_tests_bears_empty_data_and_comments() -> None:
    """Both before the message that it waits for."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        port = listening.getsockname()[1]
        transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp")
        async with Client(transport, mode="legacy") as client:
            assert client.protocol_version == "2025-11-25"


def serve(listening: socket.socket) -> None:
    """Answers ``initialize`` after noise, and accepts whatever else comes."""
    while True:
        try:
            connection = listening.accept()[0]
        except OSError:
            return
        with connection:
            request = read_request(connection)
            if b'"initialize"' not in request:
                connection.sendall(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                continue
            asked = json.loads(request.partition(b"\r\n\r\n")[2])
            message = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": RESULT}).encode()
            noise = b"event: message\ndata:\n\n: ping\n\n"
            connection.sendall(HEAD + noise + b"event: message\ndata: " + message + b"\n\n")


def read_request(connection: socket.socket) -> bytes:
    """One request with its body."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    while lengths and len(body) < int(lengths[0]):
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body
