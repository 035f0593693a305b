"""Who may use ``/mcp``: whoever may use the admin API, and nobody else."""

import json
from collections.abc import Iterator

import pytest

from tests.contract.admin_process import TOKEN, AdminProcess, admin_process

LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()


@pytest.fixture(scope="module")
def running() -> Iterator[AdminProcess]:
    """A router with a token."""
    with admin_process({"ROUTER_API_TOKEN": TOKEN}) as started:
        yield started


def sent(
    running: AdminProcess,
    *headers: str,
    body: bytes = LIST,
    length: int | None = None,
    method: str = "POST",
    host: str = "",
    token: str = TOKEN,
) -> tuple[int, bytes]:
    """Status and body of the answer to a message."""
    lines = [
        f"{method} /mcp HTTP/1.1",
        f"Host: {host or f'127.0.0.1:{running.port}'}",
        *(["Authorization: Bearer " + token] if token else []),
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        "Connection: close",
        f"Content-Length: {len(body) if length is None else length}",
        *headers,
    ]
    head, _, content = running.raw("\r\n".join([*lines, "", ""]).encode() + body).partition(b"\r\n\r\n")
    return int(head.split(b" ", 2)[1]), content


def test_with_the_token_the_tools_are_listed(running: AdminProcess) -> None:
    """Also for a client that sends the origin of the router itself."""
    assert sent(running)[0] == 200
    assert sent(running, f"Origin: http://127.0.0.1:{running.port}")[0] == 200


@pytest.mark.parametrize("token", ["", "another", TOKEN + "x"], ids=["none", "another", "longer"])
def test_without_the_token_nothing_is_told(running: AdminProcess, token: str) -> None:
    """Not even which tools there are."""
    status, body = sent(running, token=token)
    assert (status, json.loads(body)["error"]["code"]) == (401, "invalid_token")


@pytest.mark.parametrize(
    "header",
    ["Origin: https://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site"],
    ids=["other", "null", "cross_site"],
)
def test_a_page_of_another_site_is_refused(running: AdminProcess, header: str) -> None:
    """Even with the token: a browser does not say that the user wants it."""
    assert sent(running, header)[0] == 403


def test_a_name_that_was_rebound_is_refused(running: AdminProcess) -> None:
    """On loopback the Host header must name this machine."""
    assert sent(running, host="evil.example")[0] == 400


def test_a_message_over_a_mebibyte_is_refused(running: AdminProcess) -> None:
    """Before anything of it is read."""
    assert sent(running, body=b"", length=2**20 + 1)[0] == 413


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "OPTIONS"])
def test_there_are_no_streams_and_no_sessions(running: AdminProcess, method: str) -> None:
    """POST only: a GET would hold a connection on which nothing comes."""
    status, body = sent(running, method=method, body=b"")
    assert (status, json.loads(body)["error"]["code"]) == (405, "method_not_allowed")


def test_no_other_spelling_of_the_path_answers(running: AdminProcess) -> None:
    """Nor does any reach it without the token."""
    for path in ("/mcp/", "//mcp", "/MCP", "/x/../mcp", "/mcp;a=b"):
        request = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        assert running.raw(request.encode()).split(b" ", 2)[1] in (b"401", b"404")


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"7", b'{"id":1}', b"[" * 100_000, LIST + LIST], ids=lambda body: str(len(body))
)
def test_what_is_no_message_is_refused(running: AdminProcess, body: bytes) -> None:
    """With a status of the client's fault, and nothing in the log but what every request leaves there."""
    assert sent(running, body=body)[0] == 400
    assert "Traceback" not in running.log
