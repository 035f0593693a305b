"""Sessions through the real Envoy: what reaches the backend, and what is kept of it."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any

import aiohttp
import openai
import pytest

from tests.envoy.raw_backend import RawBackend, raw_backend
from tests.envoy.rig import wait_until
from tests.envoy.stack import CHAT, Stack, chat, http, stack

BACKENDS = """
backends:
  - {name: a, url: "http://127.0.0.1:{a}", type: vllm, model_name: m}
  - {name: b, url: "http://127.0.0.1:{b}", type: vllm, model_name: m}
defaults: {fallback_chain: [a, b]}
"""
SESSIONS = """
  kv_pinning: {enabled: true}
  queue_aware_routing: true
  sessions: {enabled: true, max_context_tokens: 2000}
"""
IN_ORDER = "  sessions: {enabled: true}\n"
SIMS: dict[str, Sequence[str]] = {"a": ["--model", "m"], "b": ["--model", "m"]}
CREATE = {"x-kronaxis-session-create": "true"}
UNKNOWN = "sess_00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def running() -> Iterator[Stack]:
    """One stack for all tests that leave their backends alone."""
    with stack(BACKENDS, SIMS, server_extra=SESSIONS) as started:
        yield started


async def turn(
    running: Stack, text: str, headers: dict[str, str], *, stream: bool = False, **more: Any
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of one request with a single new message."""
    body = chat("m", text, max_tokens=4, stream=stream, **more)
    async with http() as session, session.post(running.url + CHAT, json=body, headers=headers) as answer:
        return answer.status, {name.lower(): value for name, value in answer.headers.items()}, await answer.read()


def stored(running: Stack, session_id: str) -> dict[str, Any] | None:
    """What the admin API says of a session."""
    with urllib.request.urlopen(running.admin_url + "/api/sessions", timeout=5) as answer:
        sessions = json.load(answer)["sessions"]
    return next((item for item in sessions if item["id"] == session_id), None)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_right_after_the_answer_continues_it_on_the_same_backend(running: Stack, stream: bool) -> None:
    """It is kept before the end of its answer is released, and its prefix is pinned."""
    _, first, _ = await turn(running, f"nobody said this before, {stream=}", CREATE, stream=stream)
    session = {"x-kronaxis-session-id": first["x-kronaxis-session-id"]}
    for number in range(5):
        status, headers, _ = await turn(running, f"turn {number}", session, stream=stream)
        assert (status, headers["x-kronaxis-kv-pin"]) == (200, "HIT")
        assert headers["x-kronaxis-backend"] == first["x-kronaxis-backend"]
    kept = stored(running, first["x-kronaxis-session-id"])
    assert kept is not None
    assert kept["turns"] == 6


async def test_the_openai_package_keeps_a_conversation_equal_to_one_sent_whole() -> None:
    """Twenty turns, plain and streamed, with a tool call: the backend gets message for message the same."""
    with (
        raw_backend() as raw,
        stack(
            BACKENDS.replace("{a}", str(raw.port)), {"b": SIMS["b"]}, server_extra="  sessions: {enabled: true}\n"
        ) as running,
        openai.OpenAI(base_url=running.url + "/v1", api_key="none", max_retries=0) as client,
    ):
        whole: list[dict[str, Any]] = [{"role": "system", "content": "Šetri slovami. 🌍"}]
        headers = dict(CREATE)
        for number in range(20):
            new = _new_messages(number)
            sent = [*whole, *new] if number == 0 else new
            raw.behave = _answer(number)
            answer = _ask(client, sent, headers, stream=number % 2 == 1)
            assert json.loads(raw.bodies[-1])["messages"] == [*whole, *new]
            whole += [*new, answer]
            if number == 0:
                headers = {"x-kronaxis-session-id": only_session(running)}


def only_session(running: Stack) -> str:
    """The only session there is."""
    with urllib.request.urlopen(running.admin_url + "/api/sessions", timeout=5) as answer:
        (only,) = json.load(answer)["sessions"]
    return str(only["id"])


CALL = {"id": "c1", "type": "function", "function": {"name": "w", "arguments": '{"city":"Oslo"}'}}


def _new_messages(number: int) -> list[dict[str, Any]]:
    """A tool's result after each tool call, else the user's words."""
    if number % 5 == 4:
        return [{"role": "tool", "tool_call_id": "c1", "content": '{"t": 21.50}'}]
    return [{"role": "user", "content": f"otázka {number} é\u2028"}]


def _said(number: int) -> dict[str, Any]:
    """What the backend answers in a turn."""
    if number % 5 == 3:
        return {"role": "assistant", "content": None, "tool_calls": [CALL]}
    return {"role": "assistant", "content": f"odpoveď {number}"}


def _answer(number: int) -> Any:
    message = _said(number)
    finish = "tool_calls" if message.get("tool_calls") else "stop"

    def behave(connection: Any, backend: RawBackend) -> None:
        if json.loads(backend.bodies[-1]).get("stream"):
            delta = {**message}
            if "tool_calls" in delta:
                delta["tool_calls"] = [{"index": 0, **CALL}]
            events = [
                {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
                for choice in (
                    {"index": 0, "delta": delta, "finish_reason": None},
                    {"index": 0, "delta": {}, "finish_reason": finish},
                )
            ]
            pieces = [f"data: {json.dumps(event)}\n\n".encode() for event in events] + [b"data: [DONE]\n\n"]
            connection.sendall(_chunked(pieces))
        else:
            choice = {"index": 0, "message": message, "finish_reason": finish}
            body = json.dumps(
                {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
            ).encode()
            head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)

    return behave


def _chunked(pieces: list[bytes]) -> bytes:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"".join(f"{len(piece):x}\r\n".encode() + piece + b"\r\n" for piece in pieces) + b"0\r\n\r\n"


def _ask(client: openai.OpenAI, messages: list[Any], headers: dict[str, str], *, stream: bool) -> dict[str, Any]:
    """The assistant's message, as a client that keeps the conversation itself would send it back."""
    ask = client.chat.completions.create
    if not stream:
        message = ask(model="m", messages=messages, extra_headers=headers).choices[0].message
        return _sent_back(message.content, [call.model_dump(exclude_none=True) for call in message.tool_calls or ()])
    content: str | None = None
    calls: list[dict[str, Any]] = []
    for event in ask(model="m", messages=messages, stream=True, extra_headers=headers):
        delta = event.choices[0].delta
        if delta.content:
            content = (content or "") + delta.content
        calls += [call.model_dump(exclude_none=True, exclude={"index"}) for call in delta.tool_calls or ()]
    return _sent_back(content, calls)


def _sent_back(content: str | None, calls: list[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"x-kronaxis-session-id": UNKNOWN}, 404, "session_not_found"),
        ({"x-kronaxis-session-id": "sess_1"}, 400, "bad_header"),
        ({"x-kronaxis-session-id": UNKNOWN, "x-kronaxis-session-create": "true"}, 400, "bad_header"),
        ({"x-kronaxis-session-end": "true"}, 400, "bad_header"),
    ],
)
async def test_a_session_that_cannot_be_is_refused(
    running: Stack, headers: dict[str, str], status: int, code: str
) -> None:
    """No backend is asked."""
    got, _, body = await turn(running, "x", headers)
    assert (got, json.loads(body)["error"]["code"]) == (status, code)


async def test_nobody_else_sees_a_session(running: Stack) -> None:
    """Another credential or service gets the answer of an unknown id."""
    mine = {"authorization": "Bearer one", "x-kronaxis-service": "shop"}
    _, first, _ = await turn(running, "secret", {**CREATE, **mine})
    session = {"x-kronaxis-session-id": first["x-kronaxis-session-id"]}
    unknown = await turn(running, "x", {"x-kronaxis-session-id": UNKNOWN, **mine})
    for other in ({}, {**mine, "authorization": "Bearer two"}, {**mine, "x-kronaxis-service": "bank"}):
        status, _, body = await turn(running, "x", {**session, **other})
        assert (status, body) == (404, unknown[2])
    status, _, _ = await turn(running, "x", {**session, **mine})
    assert status == 200


async def test_a_session_ends_after_the_request_that_says_so(running: Stack) -> None:
    """The next one finds nothing; deleting by the admin API does the same."""
    _, first, _ = await turn(running, "one", CREATE)
    session = {"x-kronaxis-session-id": first["x-kronaxis-session-id"]}
    assert (await turn(running, "two", {**session, "x-kronaxis-session-end": "true"}))[0] == 200
    assert (await turn(running, "three", session))[0] == 404
    _, second, _ = await turn(running, "one", CREATE)
    delete = f"{running.admin_url}/api/sessions?id={second['x-kronaxis-session-id']}"
    async with http() as client, client.delete(delete) as answer:
        assert await answer.json() == {"deleted": True, "dry_run": False}
    assert (await turn(running, "two", {"x-kronaxis-session-id": second["x-kronaxis-session-id"]}))[0] == 404


async def test_a_context_over_the_limit_is_refused_and_the_session_stays(running: Stack) -> None:
    """413 with both numbers; a shorter turn goes on."""
    _, first, _ = await turn(running, "one", CREATE)
    session = {"x-kronaxis-session-id": first["x-kronaxis-session-id"]}
    status, _, body = await turn(running, "word " * 4000, session)
    error = json.loads(body)["error"]
    assert (status, error["code"]) == (413, "session_too_long")
    assert "2000" in error["message"]
    assert (await turn(running, "two", session))[0] == 200
    kept = stored(running, first["x-kronaxis-session-id"])
    assert kept is not None
    assert kept["turns"] == 2


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_that_fails_adds_nothing(running: Stack, stream: bool) -> None:
    """Neither an error of both backends nor a stream that is cut; a failed first turn creates nothing."""
    _, first, _ = await turn(running, "one", CREATE)
    session_id = first["x-kronaxis-session-id"]
    faults = {"cut_after_events": 3} if stream else {"status": 500}
    for name in SIMS:
        running.sim_faults(name, **faults)
    try:
        status, headers, _ = await turn(running, "lost", {"x-kronaxis-session-id": session_id}, stream=stream)
        assert status == (200 if stream else 500)
    except aiohttp.ClientError:
        assert stream
    if not stream:
        _, headers, _ = await turn(running, "lost", CREATE)
        assert "x-kronaxis-session-id" not in headers
    for name in SIMS:
        running.sim_faults(name)
    wait_until(lambda: running.in_flight() == 0, "the requests to be settled")
    kept = stored(running, session_id)
    assert kept is not None
    assert kept["turns"] == 1


async def test_a_client_that_leaves_before_the_end_adds_nothing(running: Stack) -> None:
    """Its next turn continues what there was before."""
    _, first, _ = await turn(running, "one", CREATE)
    session = {"x-kronaxis-session-id": first["x-kronaxis-session-id"]}
    for name in SIMS:
        running.sim_faults(name, first_token_delay_s=5)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(turn(running, "lost", session, stream=True), 0.5)
    for name in SIMS:
        running.sim_faults(name)
    wait_until(lambda: running.in_flight() == 0, "the request to be settled")
    assert (await turn(running, "two", session))[0] == 200
    kept = stored(running, first["x-kronaxis-session-id"])
    assert kept is not None
    assert kept["turns"] == 2


async def test_two_turns_at_once_are_both_kept_whole(running: Stack) -> None:
    """Whichever ends first stands first."""
    _, first, _ = await turn(running, "one", CREATE)
    session = {"x-kronaxis-session-id": first["x-kronaxis-session-id"]}
    results = await asyncio.gather(*(turn(running, f"at once {n}", session, stream=n % 2 == 0) for n in range(6)))
    assert {status for status, _, _ in results} == {200}
    kept = stored(running, first["x-kronaxis-session-id"])
    assert kept is not None
    assert kept["turns"] == 7
