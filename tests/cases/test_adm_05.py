"""ADM-05: an error message quoted content, so private text ended in logs."""

import json
from collections.abc import Iterator

import pytest

from tests.contract.admin_process import TOKEN, AdminProcess, admin_process

MAIL, KEY = "jane.doe@example.org", "sk-live-4242424242424242"


@pytest.fixture(scope="module")
def running() -> Iterator[AdminProcess]:
    """A router with a token, where sessions are enabled."""
    with admin_process({"ROUTER_API_TOKEN": TOKEN}) as started:
        yield started


MESSAGE = {"role": "user", "content": f"{MAIL} {KEY}"}
REQUESTS: dict[str, tuple[str, str, object]] = {
    "messages that are none": ("POST", "/api/sessions", {"messages": [f"{MAIL} {KEY}"]}),
    "an unknown key beside messages": ("POST", "/api/sessions", {"messages": [MESSAGE], f"{MAIL}{KEY}": 1}),
    "a conversation": ("POST", "/api/sessions", {"messages": [MESSAGE], "credential": {"value": f"Bearer {KEY}"}}),
    "a credential of a wrong kind": ("POST", "/api/sessions", {"messages": [MESSAGE], "credential": {"value": [KEY]}}),
    "a key in a backend": (
        "POST",
        "/api/backends",
        {"name": "n", "url": "http://127.0.0.1", "type": "vllm", "model_name": "m", "api_key": KEY},
    ),
    "a password in a URL": (
        "POST",
        "/api/backends",
        {"name": "n", "url": f"http://{MAIL}:{KEY}@h", "type": "vllm", "model_name": "m"},
    ),
    "a type that is a key": ("POST", "/api/backends", {"name": "n", "url": "http://h", "type": KEY, "model_name": "m"}),
    "a limit that is text": ("GET", f"/api/sessions?limit={KEY}", None),
    "a path": ("GET", f"/api/{MAIL}/{KEY}", None),
    "a body that is no JSON": ("POST", "/api/rules", None),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_no_answer_and_no_log_line_quotes_a_request(running: AdminProcess, name: str) -> None:
    """Whatever is wrong is said by its place and a rule."""
    method, target, body = REQUESTS[name]
    status, answer = running.ask(target, method, body)
    told = json.dumps(answer) + running.log
    assert status == 201 if name == "a conversation" else status in (404, 422)
    assert MAIL not in told
    assert KEY not in told


def test_a_body_that_is_no_json_is_not_quoted(running: AdminProcess) -> None:
    """Nor is what stands around the place where it goes wrong."""
    body = f'{{"name": "{MAIL} {KEY}'
    lines = ["POST /api/rules HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {TOKEN}", "Connection: close"]
    head = "\r\n".join([*lines, "Content-Type: application/json", f"Content-Length: {len(body)}", "", ""])
    answer = running.raw((head + body).encode()).decode() + running.log
    assert " 422 " in answer
    assert MAIL not in answer
    assert KEY not in answer


def test_metrics_hold_nothing_of_a_request(running: AdminProcess) -> None:
    """Labels are from closed sets."""
    lines = ["GET /metrics HTTP/1.1", "Host: 127.0.0.1", "Connection: close", "", ""]
    page = running.raw("\r\n".join(lines).encode()).decode()
    assert "kronaxis_router_admin_changes_total" in page
    assert MAIL not in page
    assert KEY not in page
