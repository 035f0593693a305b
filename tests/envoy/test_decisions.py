"""Explaining and watching on a whole stack, by the commands that an operator types."""

import asyncio
import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from tests.envoy.rig import wait_until
from tests.envoy.stack import CHAT, ROUTER_EXT, Stack, chat, http, stack
from tests.envoy.test_workers import NOWHERE, await_workers, server_section

CONFIG = """
backends:
  - {name: a, url: "http://127.0.0.1:{a}", type: vllm, model_name: m, cost_input_1m: 1, cost_output_1m: 1}
  - {name: b, url: "http://127.0.0.1:{b}", type: vllm, model_name: m, cost_input_1m: 1, cost_output_1m: 1}
rules:
  - {name: to-b, priority: 1, match: {service: s}, backends: [b, a]}
defaults: {fallback_chain: [a]}
"""
FAST = ["--model", "m", "--prefill-tps", "10000000", "--decode-tps", "100000"]
SIMS: dict[str, Sequence[str]] = {"a": FAST, "b": FAST}
PROMPT = "Tell me of the sea. " * 400


@pytest.fixture(scope="module")
def running() -> Iterator[Stack]:
    """Two simulated backends behind a rule, with pins."""
    with stack(CONFIG, SIMS, server_extra="  kv_pinning: {enabled: true}\n") as started:
        yield started


def command(running: Stack, *arguments: str, body: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """A command of the product with the stack's configuration."""
    argv = [*ROUTER_EXT, *arguments, "--config", str(running.config)]
    return subprocess.run(argv, input=body, capture_output=True, timeout=30, check=True, env=environ())


def environ() -> dict[str, str]:
    """Without a token."""
    return {name: value for name, value in os.environ.items() if name != "ROUTER_API_TOKEN"}


@contextmanager
def tailed(running: Stack, *filters: str) -> Iterator["subprocess.Popen[bytes]"]:
    """``tail --json`` that sees everything from now on."""
    argv = [*ROUTER_EXT, "tail", "--json", "--decisions", *filters, "--config", str(running.config)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ()) as process:
        try:
            yield process
        finally:
            process.terminate()


def ask(running: Stack, body: dict[str, Any], **headers: str) -> int:
    """The status of one request."""

    async def post() -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with http() as client, client.post(running.url + CHAT, json=body, headers=named) as answer:
            await answer.read()
            return answer.status

    return asyncio.run(post())


def next_event(process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    """The next line."""
    assert process.stdout is not None
    event: dict[str, Any] = json.loads(process.stdout.readline())
    return event


def first_seen(running: Stack, process: "subprocess.Popen[bytes]") -> None:
    """Returns once the tail sees what happens."""
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)

    def sees() -> bool:
        ask(running, chat("m", max_tokens=1))
        return bool(process.stdout and process.stdout.readline())

    wait_until(sees, "the tail to see a request", 20.0)
    os.set_blocking(process.stdout.fileno(), True)


def test_tail_shows_a_request_with_its_figures(running: Stack) -> None:
    """By the way of the real access log: its id, pin, time to the first token, tokens and cost."""
    ask(running, chat("m", PROMPT, max_tokens=4), x_kronaxis_service="s")
    with tailed(running) as process:
        first_seen(running, process)
        wait_until(lambda: running.in_flight() == 0, "what came before to be settled")
        body = chat("m", PROMPT, max_tokens=4, stream=True, stream_options={"include_usage": True})
        assert ask(running, body, x_kronaxis_service="s", x_request_id="looked-for") == 200
        events = iter(lambda: next_event(process), None)
        ended = next(
            event for event in events if event["decision"]["request"].get("service") == "s" and "settlement" in event
        )
    end = ended["settlement"]
    assert (end["backend"], end["rule"], end["attempts"], end["status"], end["pin"]) == ("b", "to-b", 1, 200, "hit")
    assert end["ttftMs"] > 0
    assert end["usage"]["promptTokens"] > 100
    assert end["usage"]["completionTokens"] == 4
    assert end["costMicroUsd"] == end["usage"]["promptTokens"] + 4


def test_explain_live_tells_of_the_pin_and_sends_nothing(running: Stack) -> None:
    """The state is the running router's; no backend gets a request, and no decision is kept."""
    prompt = PROMPT + "And of the sand."
    ask(running, chat("m", prompt, max_tokens=1), x_kronaxis_service="s")
    wait_until(lambda: running.in_flight() == 0, "the request to be settled")
    served = running.metric("kronaxis_router_requests_total")
    body = json.dumps(chat("m", prompt)).encode()
    arguments = ("explain", "-", "--live", "--json", "--header", "x-kronaxis-service: s")
    answer = json.loads(command(running, *arguments, body=body).stdout)
    assert (answer["cluster"], answer["decision"]["rule"]) == ("backend-b", "to-b")
    assert answer["decision"]["pin"]["expectedBytes"] > 8000
    text = command(running, "explain", "-", "--live", "--header", "x-kronaxis-service: s", body=body).stdout.decode()
    assert text.startswith("goes to b")
    assert running.metric("kronaxis_router_requests_total") == served


def test_the_admin_api_finds_a_decision_and_explains_a_request(running: Stack) -> None:
    """By what the service is called; and a body by POST."""
    ask(running, chat("m", max_tokens=1), x_kronaxis_service="s")
    with urllib.request.urlopen(f"{running.admin_url}/api/decisions?service=s&rule=to-b&limit=1", timeout=5) as answer:
        (decision,) = json.load(answer)["decisions"]
    assert decision["requestId"]
    query = f"request_id={decision['requestId']}"
    with urllib.request.urlopen(f"{running.admin_url}/api/decisions?{query}", timeout=5) as answer:
        assert [item["id"] for item in json.load(answer)["decisions"]] == [decision["id"]]
    body = json.dumps({"body": chat("m"), "headers": {"x-kronaxis-service": "s"}}).encode()
    request = urllib.request.Request(
        f"{running.admin_url}/api/explain", data=body, headers={"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=5) as answer:
        assert json.load(answer)["cluster"] == "backend-b"


def test_what_was_decided_is_replayed(running: Stack) -> None:
    """Under the same configuration nothing moves, under another one what it moves."""
    for _ in range(3):
        ask(running, chat("m", max_tokens=1), x_kronaxis_service="s")
    with urllib.request.urlopen(f"{running.admin_url}/api/decisions?service=s&limit=3", timeout=5) as answer:
        record = running.folder / "decisions.json"
        record.write_bytes(answer.read())
    same = json.loads(command(running, "replay", str(record), "--json").stdout)
    assert (same["replayed"], same["moved"]) == (3, 0)
    new = running.folder / "new.yaml"
    new.write_text(running.config.read_text().replace("backends: [b, a]", "backends: [a]"))
    argv = [*ROUTER_EXT, "replay", str(record), "--config", str(new), "--json"]
    moved = json.loads(subprocess.run(argv, capture_output=True, timeout=30, check=True).stdout)
    assert moved["moves"] == [{"rule": "to-b", "from": "b", "to": "a", "new_rule": "to-b", "count": 3}]


@pytest.fixture(scope="module")
def of_two_workers() -> Iterator[Stack]:
    """The same as one router of two processes, whose shared state is away."""
    with stack(CONFIG, SIMS, server_extra=server_section(NOWHERE, 2)) as started:
        await_workers(started)
        yield started


def test_every_worker_is_watched_and_its_decisions_are_found(of_two_workers: Stack) -> None:
    """By one tail, and by one question to the admin port."""
    with tailed(of_two_workers, "--service", "s") as process:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        seen: set[str] = set()

        def sees_both() -> bool:
            ask(of_two_workers, chat("m", max_tokens=1), x_kronaxis_service="s")
            for line in process.stdout.readlines() if process.stdout else ():
                seen.add(json.loads(line)["decision"]["id"].partition("-")[0])
            return seen == {"w0", "w1"}

        wait_until(sees_both, "both workers to be seen", 30.0)
    with urllib.request.urlopen(f"{of_two_workers.admin_url}/api/decisions?service=s&limit=1000", timeout=5) as answer:
        decisions = json.load(answer)["decisions"]
    assert {item["id"].partition("-")[0] for item in decisions} == {"w0", "w1"}
    assert {item["request"]["service"] for item in decisions} == {"s"}
    with urllib.request.urlopen(f"{of_two_workers.admin_url}/api/decisions?service=other", timeout=5) as answer:
        assert json.load(answer) == {"decisions": []}
