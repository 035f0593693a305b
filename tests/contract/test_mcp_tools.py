"""Every tool against a real router, over both transports, by the SDK's own client."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client

from router_ext.mcp.catalog import TOOLS
from router_ext.mcp.tool import Effect
from tests.contract.admin_process import TOKEN, AdminProcess, admin_process
from tests.contract.mcp_clients import TRANSPORTS, Transport, ask, mcp_client

PROMPT = "the number is hunter2"
CREDENTIAL = "Bearer sk-of-a-user-Secret-2"
CHAT = {"model": "m", "messages": [{"role": "user", "content": PROMPT}]}
BACKEND = {"name": "c", "url": "http://127.0.0.1:9", "type": "vllm", "model_name": "m2", "cost_input_1m": 0.5}
SESSION = {"messages": CHAT["messages"], "service": "shop", "credential": {"value": CREDENTIAL}}
EXPLAIN = {"body": CHAT, "headers": {"x-kronaxis-service": "shop", "authorization": CREDENTIAL}}

CHANGES: dict[str, dict[str, Any]] = {
    "router_reload": {},
    "router_add_backend": BACKEND,
    "router_remove_backend": {"name": "spare"},
    "router_drain_backend": {"name": "a"},
    "router_add_rule": {"name": "second", "backends": ["b"], "match": {"service": "web"}, "priority": 2},
    "router_remove_rule": {"name": "first"},
    "router_update_budget": {"service": "shop", "daily_limit_usd": 7},
    "router_create_session": SESSION,
}
READS: dict[str, dict[str, Any]] = {"router_explain": EXPLAIN, "router_costs": {"period": "month"}}
PER_TRANSPORT = pytest.mark.parametrize("transport", TRANSPORTS)


@pytest.fixture(scope="module")
def running() -> Iterator[AdminProcess]:
    """A router with a token, whose backends are away. Each test leaves it as it was."""
    with admin_process({"ROUTER_API_TOKEN": TOKEN, "ROUTER_ALLOW_PRIVATE_BACKENDS": "true"}) as started:
        yield started


@asynccontextmanager
async def connected(transport: Transport, running: AdminProcess) -> AsyncIterator[Client]:
    """A client that knows the tools' schemas, against which it checks every answer."""
    async with mcp_client(transport, running) as client:
        await client.list_tools()
        yield client


def running_state(running: AdminProcess) -> tuple[Any, Any]:
    """Whatever a change would change."""
    return running.ask("/api/config")[1], running.ask("/api/sessions")[1]


@PER_TRANSPORT
async def test_every_tool_that_reads_answers_as_the_api_does(transport: Transport, running: AdminProcess) -> None:
    """The structured answer is the body of the API's, and the text is the same as JSON."""
    async with connected(transport, running) as client:
        for tool in TOOLS:
            if tool.effect is not Effect.READS:
                continue
            result = await client.call_tool(tool.name, READS.get(tool.name, {}))
            request = tool.request(READS.get(tool.name, {}))
            query = "?period=month" if tool.name == "router_costs" else ""
            status, body = running.ask(request.path + query, request.method, request.body)
            assert (tool.name, status) == (tool.name, 200)
            assert steady(result.structured_content) == steady(body), tool.name
            (content,) = result.content
            assert content.type == "text"
            assert json.loads(content.text) == result.structured_content


def steady(value: Any) -> Any:
    """Without what differs between two requests."""
    if isinstance(value, dict):
        return {key: steady(part) for key, part in value.items() if key not in ("uptime_seconds", "time", "seed")}
    return [steady(part) for part in value] if isinstance(value, list) else value


@PER_TRANSPORT
async def test_the_tools_say_what_is_so(transport: Transport, running: AdminProcess) -> None:
    """A few facts of the configuration, found by an assistant that knows only the tools."""
    async with connected(transport, running) as client:
        health = await ask(client, "router_health")
        assert (health["status"], [backend["name"] for backend in health["backends"]]) == ("no_backend", ["a", "b"])
        assert (await ask(client, "router_rules"))["rules"][0]["name"] == "first"
        assert (await ask(client, "router_cost_forecast"))["forecasts"][0]["budget"] == 5.0
        assert (await ask(client, "router_shadow_results"))["ab_tests"][0]["name"] == "t"
        assert [queue["backend"] for queue in (await ask(client, "router_backend_queue"))["queues"]] == ["a", "b"]
        explained = await ask(client, "router_explain", **EXPLAIN)
        assert explained["decision"]["rule"] == "first"
        assert explained["decision"]["candidates"][0]["filteredBy"] == "health"


@PER_TRANSPORT
async def test_a_backend_comes_is_drained_and_goes(transport: Transport, running: AdminProcess) -> None:
    """Each step is answered with before and after, and another tool shows it."""
    async with connected(transport, running) as client:
        added = await ask(client, "router_add_backend", **BACKEND)
        assert (added["changed"], added["before"], added["after"]["cost_input_1m"]) == (True, None, 0.5)
        assert [found["name"] for found in (await ask(client, "router_backends"))["backends"]] == ["a", "b", "c"]
        drained = await ask(client, "router_drain_backend", name="c")
        assert (drained["before"]["drained"], drained["after"]["drained"]) == (False, True)
        back = await ask(client, "router_drain_backend", name="c", drain=False)
        assert (back["before"]["drained"], back["after"]["drained"]) == (True, False)
        removed = await ask(client, "router_remove_backend", name="c")
        assert (removed["before"]["name"], removed["after"]) == ("c", None)
        assert [found["name"] for found in (await ask(client, "router_backends"))["backends"]] == ["a", "b"]


@PER_TRANSPORT
async def test_a_rule_comes_and_goes_whatever_its_name(transport: Transport, running: AdminProcess) -> None:
    """Names with slashes, spaces and other signs arrive as they are."""
    async with connected(transport, running) as client:
        for name in ("team/a", "50% of web?", "a&dry_run=true", "..%2f", "+a;b=c"):
            added = await ask(client, "router_add_rule", name=name, backends=["b"], match={"service": "web"})
            assert (added["after"]["name"], added["after"]["origin"]) == (name, "api")
            removed = await ask(client, "router_remove_rule", name=name)
            assert (removed["changed"], removed["before"]["name"], removed["after"]) == (True, name, None)


@PER_TRANSPORT
async def test_a_budget_is_set(transport: Transport, running: AdminProcess) -> None:
    """In the place of the file's, which stays known."""
    try:
        async with connected(transport, running) as client:
            change = await ask(client, "router_update_budget", service="shop", daily_limit_usd=7)
            assert (change["before"]["daily_limit_usd"], change["after"]["daily_limit_usd"]) == (5.0, 7.0)
            assert (await ask(client, "router_cost_forecast"))["forecasts"][0]["budget"] == 7.0
    finally:
        running.ask("/api/budgets/shop", "DELETE")


@PER_TRANSPORT
async def test_the_file_is_taken_over_at_once(transport: Transport, running: AdminProcess) -> None:
    """And a file that is refused is told with the reason, while what ran goes on running."""
    good = running.config.read_text()
    try:
        async with connected(transport, running) as client:
            running.config.write_text(good.replace("priority: 1", "priority: 9"))
            tried = await ask(client, "router_reload", dry_run=True)
            assert (tried["changed"], tried["dry_run"]) == (True, True)
            assert (await ask(client, "router_reload"))["dry_run"] is False
            assert (await ask(client, "router_rules"))["rules"][0]["priority"] == 9
            running.config.write_text(good.replace("backends: [a]", "backends: [nowhere]"))
            result = await client.call_tool("router_reload", {})
            assert result.is_error
            assert "rules[0].backends" in str(result.content)
            assert (await ask(client, "router_rules"))["rules"][0]["backends"] == ["a"]
    finally:
        running.config.write_text(good)
        running.ask("/api/config/reload", "POST")


@PER_TRANSPORT
async def test_a_session_is_begun_from_messages(transport: Transport, running: AdminProcess) -> None:
    """The id is that of a session which the router lists."""
    async with connected(transport, running) as client:
        created = await ask(client, "router_create_session", **SESSION)
        listed = await ask(client, "router_sessions", limit=1)
        assert [session["id"] for session in listed["sessions"]] == [created["id"]]
        assert (created["messages"], listed["sessions"][0]["bytes"]) == (1, created["bytes"])
    assert running.ask(f"/api/sessions?id={created['id']}", "DELETE")[0] == 200


@PER_TRANSPORT
async def test_nothing_changes_with_dry_run(transport: Transport, running: AdminProcess) -> None:
    """Every tool that changes something can be tried: the answer says so, and the router stays as it is."""
    assert running.ask("/api/backends", "POST", {**BACKEND, "name": "spare"})[0] == 201
    before = running_state(running)
    async with connected(transport, running) as client:
        for tool in TOOLS:
            if tool.effect is not Effect.READS:
                answer = await ask(client, tool.name, **{**CHANGES[tool.name], "dry_run": True})
                assert answer["dry_run"] is True, tool.name
    assert running_state(running) == before
    assert running.ask("/api/backends/spare", "DELETE")[0] == 200


@PER_TRANSPORT
async def test_no_answer_holds_a_prompt_or_a_key(transport: Transport, running: AdminProcess) -> None:
    """Neither what the configuration knows nor what was just given; nor does a log hold it."""
    async with connected(transport, running) as client:
        created = await ask(client, "router_create_session", **SESSION)
        for tool in TOOLS:
            dry = {} if tool.effect is Effect.READS else {"dry_run": True}
            arguments = {**READS, **CHANGES}.get(tool.name, {})
            result = await client.call_tool(tool.name, {**arguments, **dry})
            assert not hidden_in(str(result)), tool.name
    running.ask(f"/api/sessions?id={created['id']}", "DELETE")
    log = running.folder / "mcp.log"
    assert not hidden_in(running.log + (log.read_text() if log.exists() else ""))


def hidden_in(text: str) -> list[str]:
    """Which secrets a text holds."""
    return [secret for secret in (PROMPT, "sk-inline-Secret-1", CREDENTIAL, "Secret-2", TOKEN) if secret in text]


@PER_TRANSPORT
async def test_every_change_is_told_in_the_audit_with_who_made_it(transport: Transport, running: AdminProcess) -> None:
    """Of a tool as of a request: the token's fingerprint and the address."""
    async with connected(transport, running) as client:
        await ask(client, "router_drain_backend", name="b", dry_run=True)
    (line,) = [line for line in running.log.splitlines() if '"target":"b"' in line and "drain_backend" in line][-1:]
    told = json.loads(line)
    assert (told["event"], told["action"], told["dry_run"], told["peer"]) == (
        "admin_change",
        "drain_backend",
        True,
        "127.0.0.1",
    )
    assert told["who"].startswith("token:")
