"""A bad backend against the real Envoy: what the client sees, what is counted, and that nothing is sent twice."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any

import openai
import pytest

from tests.envoy.raw_backend import raw_backend, reset, stream_then_reset, stream_then_silence
from tests.envoy.rig import wait_until
from tests.envoy.stack import CHAT, Stack, chat, http, stack

BREAKER = "circuit_breaker: {error_threshold: 5, window_seconds: 10s}"
BACKENDS = f"""
backends:
  - {{name: a, url: "http://127.0.0.1:{{a}}", type: vllm, model_name: m-a, {BREAKER}}}
  - {{name: b, url: "http://127.0.0.1:{{b}}", type: vllm, model_name: m-b}}
"""
PLAIN = BACKENDS + "defaults: {fallback_chain: [a, b]}\n"
GUARDED = BACKENDS + "defaults: {fallback_chain: [a, b], first_token_timeout: 1s}\n"
ONE_ATTEMPT = BACKENDS + "defaults: {fallback_chain: [a, b], max_attempts: 1}\n"
SIMS: dict[str, Sequence[str]] = {"a": ["--model", "m-a"], "b": ["--model", "m-b"]}
TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":"one"},"finish_reason":null}]}\n\n'
HALF = b'data: {"choices":[{"index":0,"del'


@pytest.fixture(scope="module")
def shared() -> Iterator[Stack]:
    """A stack whose streams are watched until their first token."""
    with stack(GUARDED, SIMS) as started:
        yield started


@pytest.fixture(scope="module")
def inline() -> Iterator[Stack]:
    """A stack whose answers Envoy passes on itself."""
    with stack(PLAIN, SIMS) as started:
        yield started


@pytest.fixture(params=["inline", "shared"])
def running(request: pytest.FixtureRequest) -> Iterator[Stack]:
    """Either of them, with healthy backends before and after."""
    started: Stack = request.getfixturevalue(request.param)
    yield started
    for name in SIMS:
        started.sim_faults(name)
    wait_until(lambda: started.metric("kronaxis_router_circuit_open") == 0, "the breakers to close")
    wait_until(lambda: started.metric("kronaxis_router_backend_healthy") == 2, "both backends to be healthy")


async def ask(running: Stack, *, stream: bool, **more: Any) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of one request."""
    body = chat("m-a", max_tokens=6, stream=stream, **more)
    async with http() as session, session.post(running.url + CHAT, json=body) as answer:
        content = await answer.read()
        return answer.status, {name.lower(): value for name, value in answer.headers.items()}, content


def is_whole(content: bytes, *, stream: bool) -> bool:
    """True for a complete answer of six tokens."""
    if not stream:
        return bool(json.loads(content)["usage"]["completion_tokens"] == 6)
    return content.count(b'"content":" ') == 5 and content.endswith(b"data: [DONE]\n\n")


FAULTS: dict[str, dict[str, Any]] = {
    "500": {"status": 500},
    "503": {"status": 503},
    "429": {"status": 429},
    "closed": {"refuse": True},
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_failing_answer_is_replaced_before_the_client_sees_it(running: Stack, fault: str, stream: bool) -> None:
    """One good answer of the next candidate, under its own model name, and the failure's headers are gone."""
    running.sim_faults("a", **FAULTS[fault])
    status, headers, content = await ask(running, stream=stream)
    assert (status, headers["x-kronaxis-backend"], headers["x-kronaxis-attempts"]) == (200, "b", "2")
    assert is_whole(content, stream=stream)
    assert b'"model":"m-b"' in content
    assert "x-kronaxis-egress-flags" not in headers
    assert "retry-after" not in headers


async def test_the_last_failure_reaches_the_client_when_nobody_is_left(running: Stack) -> None:
    """Both backends fail: the last one's answer, in OpenAI's shape, and the count of attempts."""
    for name in SIMS:
        running.sim_faults(name, status=503)
    status, headers, content = await ask(running, stream=False)
    assert (status, headers["x-kronaxis-attempts"]) == (503, "2")
    assert json.loads(content)["error"]["message"]


async def test_a_killed_backend_costs_no_request(running: Stack) -> None:
    """Connections are refused; the next candidate answers, and the failover is counted as one to an unreachable one."""
    before = running.metric("kronaxis_router_failovers_total", reason="upstream_unreachable")
    running.sims["a"].kill()
    results = await asyncio.gather(*(ask(running, stream=number % 2 == 0) for number in range(4)))
    assert [(status, headers["x-kronaxis-backend"]) for status, headers, _ in results] == [(200, "b")] * 4
    assert running.metric("kronaxis_router_failovers_total", reason="upstream_unreachable") > before
    running.start_sim("a", *SIMS["a"])


async def test_sixteen_prompts_that_are_too_long_trip_nothing(running: Stack) -> None:
    """The engine answers 400, which reaches the client as it is and is tried nowhere else; the engine stays in use."""
    prompt = "word " * 140_000
    results = await asyncio.gather(*(ask(running, stream=False, content=prompt) for _ in range(16)))
    assert [status for status, _, _ in results] == [400] * 16
    assert {headers["x-kronaxis-backend"] for _, headers, _ in results} == {"a"}
    assert not any("x-kronaxis-attempts" in headers for _, headers, _ in results)
    wait_until(lambda: running.in_flight() == 0, "the requests to be settled")
    assert running.metric("kronaxis_router_circuit_open", backend="a") == 0


async def test_the_breaker_trips_at_its_threshold_and_a_good_probe_closes_it(running: Stack) -> None:
    """Four errors leave it closed, the fifth opens it; it stays open until a probe gets a good answer."""
    trips = running.metric("kronaxis_router_circuit_trips_total", backend="a")
    running.sim_faults("a", status=500)
    for _ in range(4):
        await ask(running, stream=False)
    assert running.metric("kronaxis_router_circuit_trips_total", backend="a") == trips
    running.sim_faults("a", status=500, health_status=500)
    await ask(running, stream=False)
    wait_until(lambda: running.metric("kronaxis_router_circuit_open", backend="a") == 1, "the breaker to open")
    assert running.metric("kronaxis_router_circuit_trips_total", backend="a") == trips + 1
    _, headers, _ = await ask(running, stream=False)
    assert (headers["x-kronaxis-backend"], "x-kronaxis-attempts" in headers) == ("b", False)
    running.sim_faults("a")
    wait_until(lambda: running.metric("kronaxis_router_circuit_open", backend="a") == 0, "the breaker to close")
    _, headers, _ = await ask(running, stream=False)
    assert headers["x-kronaxis-backend"] == "a"


async def test_a_backend_without_a_breaker_never_trips(running: Stack) -> None:
    """Only probes take it out."""
    running.sim_faults("a", refuse=True)
    running.sim_faults("b", status=500)
    for _ in range(12):
        await ask(running, stream=False)
    assert running.metric("kronaxis_router_circuit_open", backend="b") == 0
    assert running.metric("kronaxis_router_circuit_trips_total", backend="b") == 0


async def test_a_backend_that_asks_for_a_pause_gets_it(running: Stack) -> None:
    """After a 503 with ``Retry-After`` nothing goes there until then, and nothing is counted as an error."""
    running.sim_faults("a", status=503, retry_after_s=2)
    _, first, _ = await ask(running, stream=False)
    running.sim_faults("a")
    _, second, _ = await ask(running, stream=False)
    assert (first["x-kronaxis-attempts"], "x-kronaxis-attempts" in second) == ("2", False)
    assert (first["x-kronaxis-backend"], second["x-kronaxis-backend"]) == ("b", "b")
    assert running.metric("kronaxis_router_backend_healthy", backend="a") == 0
    wait_until(lambda: running.metric("kronaxis_router_backend_healthy", backend="a") == 1, "the pause to end")
    _, headers, _ = await ask(running, stream=False)
    assert headers["x-kronaxis-backend"] == "a"


async def test_a_stream_that_is_silent_fails_over_after_the_limit(shared: Stack) -> None:
    """The headers have come, the first token has not: the client gets the other backend's stream only."""
    shared.sim_faults("a", first_token_delay_s=20)
    status, headers, content = await ask(shared, stream=True)
    assert (status, headers["x-kronaxis-backend"], headers["x-kronaxis-attempts"]) == (200, "b", "2")
    assert is_whole(content, stream=True)
    shared.sim_faults("a")


async def test_the_first_token_is_not_held_back(shared: Stack) -> None:
    """A watched stream reaches the client as it comes: the first token long before the last one."""
    body = chat("m-a", max_tokens=200, stream=True, ignore_eos=True)
    loop = asyncio.get_running_loop()
    async with http() as session, session.post(shared.url + CHAT, json=body) as answer:
        times = [loop.time() async for line in answer.content if b'"content":"' in line and b'"content":""' not in line]
    assert len(times) == 200
    assert times[-1] - times[0] > 0.5


def two_backends(port: int, defaults: str = ", first_token_timeout: 1s") -> str:
    """A configuration with a bare backend first."""
    return PLAIN.replace("{a}", str(port)).replace("[a, b]", f"[a, b]{defaults}")


async def test_a_stream_cut_in_the_middle_ends_with_an_error_event() -> None:
    """Whole events, then the error; the breaker counts it, and nothing is sent twice."""
    with (
        raw_backend() as raw,
        stack(two_backends(raw.port), {"b": SIMS["b"]}) as running,
    ):
        sent, raw.behave = len(raw.bodies), stream_then_reset(TOKEN, TOKEN + HALF)
        for _ in range(5):
            status, headers, content = await ask(running, stream=True)
            assert (status, headers["x-kronaxis-backend"], "x-kronaxis-attempts" in headers) == (200, "a", False)
            assert content.startswith(TOKEN + TOKEN + b'data: {"error":{"message":"The backend ended')
            assert content.endswith(b"data: [DONE]\n\n")
        assert len(raw.bodies) == sent + 5
        wait_until(lambda: running.metric("kronaxis_router_circuit_trips_total", backend="a") == 1, "the trip")
        assert running.metric("kronaxis_router_errors_total", reason="upstream_cut") == 5
        assert running.metric("kronaxis_router_failovers_total") == 0


async def test_openai_clients_see_a_cut_stream_as_an_error() -> None:
    """The package raises its own error after the tokens that had come."""
    with (
        raw_backend() as raw,
        stack(two_backends(raw.port), {"b": SIMS["b"]}) as running,
        openai.OpenAI(base_url=running.url + "/v1", api_key="none", max_retries=0) as client,
    ):
        raw.behave = stream_then_reset(TOKEN)
        stream = client.chat.completions.create(model="m-a", messages=[{"role": "user", "content": "hi"}], stream=True)
        assert next(stream).choices[0].delta.content == "one"
        with pytest.raises(openai.APIError, match="ended the stream early"):
            next(stream)


@pytest.mark.parametrize("defaults", ["", ", first_token_timeout: 5s"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_reset_after_the_body_was_read_is_retried_once_elsewhere(defaults: str, stream: bool) -> None:
    """No byte had come back: the next candidate gets the request, and each attempt is in the access log."""
    with raw_backend() as raw, stack(two_backends(raw.port, defaults), {"b": SIMS["b"]}) as running:
        raw.behave = reset
        raw.bodies.clear()
        status, headers, content = await ask(running, stream=stream)
        assert (status, headers["x-kronaxis-backend"], headers["x-kronaxis-attempts"]) == (200, "b", "2")
        assert is_whole(content, stream=stream)
        assert len(raw.bodies) == 1
        wait_until(lambda: attempts_logged(running) == ["backend-a", "backend-b"], "both attempts in the access log")


def attempts_logged(running: Stack) -> list[str]:
    """The clusters that the last request was sent to, by Envoy's access log."""
    lines = [line for line in running.envoy.access_log() if line["path"] == CHAT]
    clients = [line for line in lines if line["log"] == "router_ext.ingress"]
    if not clients:
        return []
    prefix = clients[-1]["id"] + "."
    own = [line for line in lines if line["log"] == "router_ext.egress" and line["request_id"].startswith(prefix)]
    inline = [] if clients[-1]["route"] == "relayed" else [clients[-1]["upstream_cluster"]]
    return inline + [line["upstream_cluster"] for line in own]


async def test_a_client_that_leaves_cancels_the_upstream_call_within_a_second() -> None:
    """It leaves while the failover waits for the second backend."""
    with (
        raw_backend() as raw,
        stack(PLAIN.replace("{b}", str(raw.port)), {"a": SIMS["a"]}) as running,
    ):
        raw.behave = stream_then_silence
        running.sim_faults("a", status=503)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ask(running, stream=True), 1.0)
        assert raw.bodies
        assert await asyncio.to_thread(raw.gone.wait, 1.0)
        wait_until(lambda: running.in_flight() == 0, "the request to be settled")
        assert running.metric("kronaxis_router_errors_total", reason="client_left") == 1


async def test_one_attempt_means_none_elsewhere() -> None:
    """With ``max_attempts: 1`` the backend's own answer reaches the client."""
    with stack(ONE_ATTEMPT, SIMS) as running:
        running.sim_faults("a", status=503)
        status, headers, _ = await ask(running, stream=False)
        assert (status, headers["x-kronaxis-backend"]) == (503, "a")
        assert "x-kronaxis-attempts" not in headers
