"""ADM-01: /admin asked for a login, /admin/ did not."""

from collections.abc import Iterator

import pytest

from tests.contract.admin_process import TOKEN, AdminProcess, admin_process

PATHS = [
    "/api/backends",
    "/api/backends/",
    "//api/backends",
    "/api//backends",
    "/API/backends",
    "/Api/Backends",
    "/api/%62ackends",
    "/%61%70%69/backends",
    "/api%2fbackends",
    "/%2e%2e/api/backends",
    "/x/../api/backends",
    "/health/../api/backends",
    "/health/%2e%2e/api/backends",
    "/health/..;/api/backends",
    "/health%2f..%2fapi/backends",
    "/api/backends;a=b",
    "/api;a=b/backends",
    "/api/backends?token=x",
    "/api/backends%00",
    "/api/backends%20",
    "/api\\backends",
    "/./api/backends",
    "/health/",
    "//health",
    "/HEALTH",
    "/metrics/../api/backends",
    "/ready/api/backends",
    "/mcp",
    "/mcp/",
    "/openapi.json",
    "http://127.0.0.1/api/backends",
    "*",
]
METHODS = ["GET", "HEAD", "OPTIONS", "TRACE", "POST", "PUT", "DELETE", "PATCH", "get", "BREW"]
OVERRIDES = [
    "X-HTTP-Method-Override: GET",
    "X-Method-Override: GET",
    "X-HTTP-Method: GET",
    "X-Original-URL: /health",
    "X-Rewrite-URL: /health",
    "X-Forwarded-Prefix: /health",
    "X-Forwarded-For: 127.0.0.1",
    "Forwarded: for=127.0.0.1",
    "X-Kronaxis-Admin-Who: loopback",
    "Authorization: Bearer",
    "Cookie: token=x",
]
SECRETS = (b'"backends"', b"model_name", b'"paths"', b"127.0.0.1:9")


@pytest.fixture(scope="module")
def running() -> Iterator[AdminProcess]:
    """A router with a token."""
    with admin_process({"ROUTER_API_TOKEN": TOKEN}) as started:
        yield started


def refused(running: AdminProcess, method: str, target: str, *headers: str) -> bool:
    """Whether a request without the token is answered with a refusal, and with no data."""
    lines = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", "Connection: close", "Content-Length: 0", *headers]
    answer = running.raw("\r\n".join([*lines, "", ""]).encode())
    status = int(answer.split(b" ", 2)[1])
    return status in (400, 401, 403, 404) and not any(secret in answer for secret in SECRETS)


@pytest.mark.parametrize("path", PATHS)
def test_no_spelling_of_a_path_goes_around_the_token(running: AdminProcess, path: str) -> None:
    """The token is asked for by the whole application; the paths without it are a short list of exact ones."""
    assert refused(running, "GET", path)


@pytest.mark.parametrize("method", METHODS)
def test_no_method_goes_around_the_token(running: AdminProcess, method: str) -> None:
    """Whether the path knows it or not."""
    assert refused(running, method, "/api/backends")


@pytest.mark.parametrize("header", OVERRIDES)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_header_goes_around_the_token(running: AdminProcess, header: str, method: str) -> None:
    """Neither one that other servers take for a method or a path, nor one that says who asks."""
    assert refused(running, method, "/api/backends", header)


@pytest.mark.parametrize("version", ["HTTP/1.0", "HTTP/1.1"])
def test_with_the_token_the_same_path_answers(running: AdminProcess, version: str) -> None:
    """So the refusals above are for the want of it."""
    lines = [f"GET /api/backends {version}", "Host: 127.0.0.1", f"Authorization: Bearer {TOKEN}", "Connection: close"]
    answer = running.raw("\r\n".join([*lines, "", ""]).encode())
    assert answer.split(b" ", 2)[1] == b"200"
    assert b'"backends"' in answer
