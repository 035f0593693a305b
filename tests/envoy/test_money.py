"""Budgets and rate limits with a real Envoy: what clients get when the money or the rate is spent."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.envoy.rig import wait_until
from tests.envoy.stack import CHAT, Stack, chat, http, stack

BACKENDS = """
backends:
  - {name: dear, url: "http://127.0.0.1:{dear}", type: vllm, model_name: m, cost_input_1m: 1, cost_output_1m: 100}
  - {name: cheap, url: "http://127.0.0.1:{cheap}", type: vllm, model_name: m, cost_input_1m: 0, cost_output_1m: 0}
  - {name: free, url: "http://127.0.0.1:{dear}", type: vllm, model_name: m}
rules:
  - {name: unpriced, match: {service: unpriced}, backends: [free]}
defaults: {fallback_chain: [dear]}
budgets:
  rejected: {daily_limit_usd: 0.001, action: reject}
  moved: {daily_limit_usd: 0.001, action: downgrade, downgrade_target: cheap}
  edge: {daily_limit_usd: 0.001}
  unpriced: {daily_limit_usd: 1}
rate_limits:
  fast: {requests_per_second: 0.25, burst_size: 2}
"""
"""A token of output costs 100 micro-dollars: ten of them are a day's budget."""

SPENT = "kronaxis_router_budget_spent_ratio"
ACTIONS = "kronaxis_router_budget_actions_total"


@pytest.fixture(scope="module")
def running() -> Iterator[Stack]:
    """One stack; each test has services of its own."""
    with stack(BACKENDS, {"dear": ["--model", "m"], "cheap": ["--model", "m"]}) as started:
        yield started


async def call(running: Stack, service: str, path: str = CHAT, **more: Any) -> tuple[int, dict[str, str], str]:
    """Status, headers and error code ("" without) of one request for at most 20 tokens."""
    body: dict[str, Any] = {"max_tokens": 20, "ignore_eos": True} | more
    headers = {"x-kronaxis-service": service}
    async with http() as session, session.post(running.url + path, json=chat("m", **body), headers=headers) as answer:
        read = await answer.json(content_type=None) if answer.content_type == "application/json" else {}
        return answer.status, {name.lower(): value for name, value in answer.headers.items()}, _code(read)


def _code(body: dict[str, dict[str, str]]) -> str:
    return body.get("error", {}).get("code", "")


async def spend_all(running: Stack, service: str) -> None:
    """One call that costs more than the budget, whose entry has come."""
    status, headers, _ = await call(running, service)
    assert (status, headers["x-kronaxis-backend"]) == (200, "dear")
    assert "x-kronaxis-budget" not in headers
    await asyncio.to_thread(wait_until, lambda: running.metric(SPENT, service=service) >= 1, "the budget to be spent")


async def test_above_the_limit_a_request_is_rejected_until_midnight(running: Stack) -> None:
    """429 with the seconds to it; other services are served."""
    await spend_all(running, "rejected")
    before = datetime.now(UTC)
    status, headers, code = await call(running, "rejected")
    assert (status, code) == (429, "budget_exceeded")
    midnight_s = 86_400 - (before.hour * 3600 + before.minute * 60 + before.second)
    assert midnight_s - 5 <= int(headers["retry-after"]) <= midnight_s
    assert running.metric(ACTIONS, service="rejected", action="reject") == 1
    assert (await call(running, "another"))[0] == 200


async def test_above_the_limit_a_request_is_downgraded(running: Stack) -> None:
    """The target answers, plain and streamed, and the client is told."""
    await spend_all(running, "moved")
    for stream in (False, True):
        status, headers, _ = await call(running, "moved", stream=stream)
        assert (status, headers["x-kronaxis-backend"], headers["x-kronaxis-budget"]) == (200, "cheap", "downgraded")
        assert headers["x-kronaxis-rule"] == "budget"
    assert running.metric(ACTIONS, service="moved", action="downgrade") == 2


async def test_of_fifty_requests_at_the_edge_one_passes(running: Stack) -> None:
    """The others come while it runs; what is spent in the end is its cost, and no more."""
    calls = (call(running, "edge", max_tokens=200, ignore_eos=True) for _ in range(50))
    answers = await asyncio.gather(*calls)
    assert sorted(status for status, _, _ in answers) == [200] + [429] * 49
    await asyncio.to_thread(wait_until, lambda: running.metric(SPENT, service="edge") > 0, "the call to be paid for")
    requests = running.metric("kronaxis_router_requests_total", service="edge")
    cost = running.metric("kronaxis_router_cost_usd_total", service="edge")
    assert requests == 1
    assert cost <= 0.001 + 200 * 0.0001


async def test_a_service_that_sends_too_much_is_told_when_to_come_back(running: Stack) -> None:
    """Two at once, then one each four seconds; other paths are not limited."""
    first = [await call(running, "fast", max_tokens=1) for _ in range(3)]
    assert [(status, code) for status, _, code in first] == [(200, ""), (200, ""), (429, "rate_limited")]
    assert 1 <= int(first[2][1]["retry-after"]) <= 4
    assert running.metric("kronaxis_router_rate_limited_total", service="fast") == 1
    async with http() as session:
        for _ in range(3):
            headers = {"x-kronaxis-service": "fast"}
            async with session.get(running.url + "/v1/models", headers=headers) as answer:
                assert answer.status == 200


async def test_a_call_without_prices_is_counted(running: Stack) -> None:
    """And said at the start."""
    assert (await call(running, "unpriced"))[0] == 200
    assert running.metric("kronaxis_router_unpriced_calls_total", backend="free") == 1
    problems = [line["problem"] for line in running.log_events("config") if line["path"] == "backends[2]"]
    assert any("has no cost_input_1m" in problem for problem in problems)
