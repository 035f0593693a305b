"""Requests through the real Envoy: bytes kept, bad input refused, headers that clients must not use."""

import asyncio
import gzip
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

import aiohttp
import pytest

from tests.envoy.rig import wait_until
from tests.envoy.stack import CHAT, Stack, chat, http, stack

CONFIG = """
backends:
  - {name: a, url: "http://127.0.0.1:{a}", type: vllm, model_name: m, aliases: [alias], lora_adapters: [tuned]}
  - {name: b, url: "http://127.0.0.1:{b}", type: vllm, model_name: m, api_key: sk-backend, capabilities: [vision]}
rules:
  - {name: gold, priority: 10, match: {service: gold}, backends: [b]}
  - {name: images, priority: 5, match: {content_type: vision}, backends: [b]}
defaults: {fallback_chain: [a, b]}
"""
LARGE = ["--max-model-len", "100000000", "--prefill-tps", "1000000000"]
SIMS: dict[str, Sequence[str]] = {
    "a": ["--model", "m", "--lora", "tuned", "--decode-tps", "200", *LARGE],
    "b": ["--model", "m", "--api-key", "sk-backend", "--multimodal", *LARGE],
}
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def running() -> Iterator[Stack]:
    """One stack for the module; requests arrive with the backend's default speed."""
    with stack(CONFIG, SIMS) as started:
        yield started


def padded(size: int, **more: Any) -> bytes:
    """A chat body of exactly ``size`` bytes."""
    empty = len(json.dumps(chat("alias", "", max_tokens=2, **more)))
    return json.dumps(chat("alias", "x" * (size - empty), max_tokens=2, **more)).encode()


async def post(running: Stack, body: bytes, path: str = CHAT, **headers: str) -> tuple[int, dict[str, str], Any]:
    """Status, headers and JSON body of one request."""
    names = JSON | {name.replace("_", "-"): value for name, value in headers.items()}
    async with http() as session, session.post(running.url + path, data=body, headers=names) as answer:
        return (
            answer.status,
            {name.lower(): value for name, value in answer.headers.items()},
            await answer.json(content_type=None),
        )


BAD = [
    ("not JSON", b'{"model": "m", "messages": [', 400, "invalid_json"),
    ("not an object", b'["m"]', 400, "invalid_json"),
    ("empty", b"", 400, "invalid_json"),
    ("model twice", b'{"model":"m","mod\\u0065l":"x","messages":[]}', 400, "duplicate_field"),
    ("nested too deep", b'{"model":"m","x":' + b"[" * 5000 + b"]" * 5000 + b"}", 400, "invalid_json"),
    ("model not text", b'{"model":7,"messages":[]}', 400, "invalid_model"),
    (
        "control characters in the model",
        b'{"model":"m\\r\\nx-kronaxis-cluster: evil","messages":[]}',
        400,
        "invalid_model",
    ),
]


@pytest.mark.parametrize(("body", "status", "code"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
async def test_a_bad_body_gets_an_openai_style_error(running: Stack, body: bytes, status: int, code: str) -> None:
    """The refusal is ours, with the reason as its code."""
    seen, headers, answer = await post(running, body)
    assert (seen, answer["error"]["code"]) == (status, code)
    assert set(answer["error"]) == {"message", "type", "param", "code"}
    assert headers["content-type"] == "application/json"


@pytest.mark.parametrize("size", [400_000, 20_000_000])
async def test_a_large_body_is_refused_and_accepted_like_a_small_one(running: Stack, size: int) -> None:
    """The whole table holds at 400 KB and at 20 MB, and a good body of that size is answered."""
    good = padded(size)
    pad = b'"' + b"y" * size + b'"'
    cases = [
        (good, 200, None),
        (good[:-1], 400, "invalid_json"),
        (b"[" + pad + b"]", 400, "invalid_json"),
        (b'{"model":"m","a":' + pad + b',"model":"m"}', 400, "duplicate_field"),
        (b'{"a":' + pad + b',"x":' + b"[" * 5000 + b"]" * 5000 + b"}", 400, "invalid_json"),
    ]
    for body, status, code in cases:
        seen, _, answer = await post(running, body)
        assert (seen, answer.get("error", {}).get("code")) == (status, code)


@pytest.mark.parametrize("over", [0, 1, 65_537])
async def test_the_body_limit_is_exact(running: Stack, over: int) -> None:
    """32 MiB pass, one byte more is 413, whether Envoy or the processor notices."""
    status, _, answer = await post(running, padded(33_554_432 + over))
    if over:
        assert (status, answer["error"]["code"]) == (413, "body_too_large")
    else:
        assert status == 200


async def test_odd_bytes_reach_the_backend_as_they_came(running: Stack) -> None:
    """Lone surrogates, 54-bit integers, unknown fields and key order: only the model's value changes."""
    body = (
        b'{"zeta": 1,  "model" : "alias","messages":[{"role":"user","content":"a \\ud800 b"}],'
        b' "seed":36028797018963969,'
        b'"x_unknown":{"b":1.10,"a":[ ]},"max_tokens":1}'
    )
    wire = (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    )
    received = await _captured(running, wire % len(body) + body)
    assert received.partition(b"\r\n\r\n")[2] == body.replace(b'"alias"', b'"m"')


async def _captured(running: Stack, request: bytes) -> bytes:
    """What a bare TCP backend receives of one raw request; it answers 200 with an empty object."""
    seen: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def backend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lower = head.lower()
        body = b""
        if b"content-length: " in lower:
            body = await reader.readexactly(int(lower.split(b"content-length: ")[1].split(b"\r\n")[0]))
        if b"/health" not in head.split(b"\r\n")[0] and not seen.done():
            seen.set_result(head + body)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    # The backend's own port, while its simulated server is away.
    running.sims["a"].kill()
    server = await asyncio.start_server(backend, "127.0.0.1", running.sim_ports["a"])
    try:
        await asyncio.to_thread(_await_up, running)
        seen = asyncio.get_running_loop().create_future()
        reader, writer = await asyncio.open_connection("127.0.0.1", running.ingress)
        writer.write(request)
        await reader.readuntil(b"\r\n\r\n")
        writer.close()
        return await asyncio.wait_for(seen, 5)
    finally:
        server.close()
        await asyncio.to_thread(running.start_sim, "a", *SIMS["a"])
        await asyncio.to_thread(_await_up, running)


def _await_up(running: Stack) -> None:
    """Waits until every backend is up, by a probe that began after the call."""
    probes = running.envoy.stat("cluster.backend-a.upstream_rq_total")
    wait_until(lambda: running.envoy.stat("cluster.backend-a.upstream_rq_total") > probes, "a probe", 20.0)
    wait_until(lambda: running.metric("kronaxis_router_backend_healthy") == 2, "every backend up", 20.0)


async def test_a_compressed_body_is_read_and_forwarded_as_it_came(running: Stack) -> None:
    """The model is read from the inflated body; a body that needs no change keeps its coding and its bytes."""
    body = gzip.compress(json.dumps(chat("m", max_tokens=1)).encode())
    head = (
        b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n" % CHAT.encode()
    )
    received = await _captured(running, head + b"content-length: %d\r\n\r\n" % len(body) + body)
    seen_head, _, seen_body = received.partition(b"\r\n\r\n")
    assert seen_body == body
    assert b"content-encoding: gzip" in seen_head.lower()


async def test_internal_headers_of_a_client_have_no_effect_and_reach_no_backend(running: Stack) -> None:
    """The routing header, Envoy's control headers and the whole reserved prefix stop at the door."""
    body = json.dumps(chat("m", max_tokens=1)).encode()
    head = (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-kronaxis-cluster: backend-b\r\nx-kronaxis-tier: 1\r\n"
        b"x-kronaxis-unheard-of: 1\r\nx-envoy-upstream-rq-timeout-ms: 1\r\ncontent-type: application/json\r\n"
    )
    received = await _captured(running, head + b"content-length: %d\r\n\r\n" % len(body) + body)
    assert b"x-kronaxis" not in received.lower()
    assert b"x-envoy" not in received.lower()


async def test_a_backend_with_a_key_gets_that_key_and_not_the_callers(running: Stack) -> None:
    """The rule's backend demands its own key: the caller's Authorization header does not stand in its way."""
    body = json.dumps(chat("m", max_tokens=1)).encode()
    status, headers, _ = await post(running, body, x_kronaxis_service="gold", authorization="Bearer sk-caller")
    assert (status, headers["x-kronaxis-backend"]) == (200, "b")


async def test_an_image_goes_where_images_are_seen(running: Stack) -> None:
    """content_type: vision is told from the message parts."""
    parts = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, {"type": "text", "text": "?"}]
    request = {"model": "m", "messages": [{"role": "user", "content": parts}], "max_tokens": 1}
    _, headers, _ = await post(running, json.dumps(request).encode())
    assert (headers["x-kronaxis-backend"], headers["x-kronaxis-rule"]) == ("b", "images")


async def test_an_adapters_name_is_kept(running: Stack) -> None:
    """A LoRA adapter is the model to ask for."""
    _, headers, answer = await post(running, json.dumps(chat("tuned", max_tokens=1)).encode())
    assert (headers["x-kronaxis-backend"], answer["model"]) == ("a", "tuned")


async def test_sessions_are_refused_while_disabled(running: Stack) -> None:
    """A session header without sessions is a clear 400, not a shortened conversation."""
    status, _, answer = await post(running, json.dumps(chat("m")).encode(), x_kronaxis_session_create="true")
    assert (status, answer["error"]["code"]) == (400, "sessions_disabled")


async def test_the_model_list_and_other_paths(running: Stack) -> None:
    """/v1/models comes from the configuration; what is no inference passes to the first healthy backend."""
    async with http() as session:
        async with session.get(running.url + "/v1/models") as answer:
            assert {card["id"] for card in (await answer.json())["data"]} == {"m", "alias", "tuned"}
        async with session.get(running.url + "/version") as answer:
            assert (answer.status, "version" in await answer.json()) == (200, True)
        async with session.options(running.url + CHAT, headers={"origin": "https://app.example"}) as answer:
            assert answer.status in (200, 204, 405)


async def test_the_first_token_does_not_wait_for_the_last(running: Stack) -> None:
    """A stream of one second shows its first event within half of it."""
    body = chat("m", max_tokens=200, stream=True, ignore_eos=True)
    async with http() as session:
        started = time.monotonic()
        async with session.post(running.url + CHAT, json=body) as answer:
            await answer.content.readany()
            first = time.monotonic() - started
            await answer.read()
        assert first < (time.monotonic() - started) / 2


async def test_what_was_decided_and_how_it_ended_is_on_record(running: Stack) -> None:
    """Usage, status and time to first token reach the metrics and the one log line of the exchange."""
    # Streams of other tests, whose usage is estimated, are counted once they are settled.
    wait_until(lambda: running.in_flight() == 0, "nothing in flight")
    before = running.metric("kronaxis_router_tokens_total", backend="a", direction="completion")
    async with (
        http() as session,
        session.post(
            running.url + CHAT,
            json=chat("m", max_tokens=7, stream=True, ignore_eos=True, stream_options={"include_usage": True}),
            headers={"x-kronaxis-service": "not-configured"},
        ) as answer,
    ):
        await answer.read()
    wait_until(
        lambda: running.metric("kronaxis_router_tokens_total", backend="a", direction="completion") == before + 7,
        "seven tokens counted",
    )
    assert running.metric("kronaxis_router_requests_total", service="not-configured") == 0
    line = [line for line in running.log_events("exchange") if line["service"] == "not-configured"][-1]
    assert (line["status"], line["backend"], line["completion_tokens"], line["stream"]) == (200, "a", 7, True)
    assert 0 < line["ttft_ms"] <= line["duration_ms"]


async def test_a_decision_keeps_its_reasons(running: Stack) -> None:
    """The admin API shows who was a candidate, what filtered whom, and the scores."""
    await post(running, json.dumps(chat("tuned", max_tokens=1)).encode(), x_kronaxis_service="why")
    async with http() as session, session.get(running.admin_url + "/api/decisions") as answer:
        decisions = (await answer.json())["decisions"]
    decision = next(item for item in decisions if item["request"].get("service") == "why")
    kept, removed = decision["candidates"]
    assert (decision["backend"], decision["upstreamModel"], decision["rule"]) == ("a", "tuned", "default")
    assert (kept["backend"], [score["scorer"] for score in kept["scores"]][-1]) == ("a", "in_flight")
    assert (removed["backend"], removed["filteredBy"]) == ("b", "lora")
    assert "Say hello" not in json.dumps(decisions)


async def test_no_backend_is_503_with_retry_after(running: Stack) -> None:
    """With every backend down the client is told when to come back."""
    running.sim_faults("a", health_status=503)
    running.sim_faults("b", health_status=503)
    try:
        wait_until(lambda: running.metric("kronaxis_router_backend_healthy") == 0, "every backend down", 20.0)
        status, headers, answer = await post(running, json.dumps(chat("m")).encode())
        assert (status, answer["error"]["code"]) == (503, "no_backend")
        assert int(headers["retry-after"]) >= 1
    finally:
        running.sim_faults("a")
        running.sim_faults("b")
        wait_until(lambda: running.metric("kronaxis_router_backend_healthy") == 2, "every backend up", 20.0)


async def test_a_client_that_leaves_leaves_nothing_behind(running: Stack) -> None:
    """Clients gone before the body ends, in the middle of a stream, or right after the request: all counts end at 0."""
    body = json.dumps(chat("m", max_tokens=400, stream=True, ignore_eos=True)).encode()
    head = (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    )
    for sent in (head % len(body) + body[:20], head % len(body) + body):
        for read in (0, 300):
            reader, writer = await asyncio.open_connection("127.0.0.1", running.ingress)
            writer.write(sent)
            await writer.drain()
            if read and sent.endswith(body):
                await reader.readexactly(read)
            writer.transport.abort()
    wait_until(lambda: running.in_flight() == 0, "no request in flight")
    assert running.metric("kronaxis_router_faults_total") == 0


async def test_the_admin_port_answers_its_own_host_only(running: Stack) -> None:
    """A web page that was rebound to the loopback address is refused."""
    async with aiohttp.ClientSession() as session:
        async with session.get(running.admin_url + "/health") as answer:
            health = await answer.json()
        async with session.get(running.admin_url + "/health", headers={"host": "evil.example"}) as answer:
            assert answer.status == 400
    assert [backend["name"] for backend in health["backends"]] == ["a", "b"]
    assert health["version"]
    assert health["uptime_seconds"] > 0
