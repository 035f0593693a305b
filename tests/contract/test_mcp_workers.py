"""The tools of a router of several processes: its supervisor has them, and each answers for all workers."""

from collections.abc import Iterator
from typing import Any

import pytest

from router_ext.mcp.catalog import TOOLS
from router_ext.mcp.tool import Effect
from tests.contract.admin_process import TOKEN, AdminProcess, admin_process
from tests.contract.mcp_clients import ask, http_client
from tests.envoy.rig import wait_until

CONFIG = """
server:
  port: {0}
  egress_port: {1}
  admin_port: {2}
  envoy_admin_port: {3}
  processor_address: "unix:{folder}/p.sock"
  workers: 2
  shared_state: redis
  sessions: {{store: redis, redis_url: "redis://127.0.0.1:1"}}
backends:
  - {{name: a, url: "http://127.0.0.1:9", type: vllm, model_name: m}}
rules:
  - {{name: first, priority: 1, match: {{service: shop}}, backends: [a]}}
defaults: {{fallback_chain: [a]}}
budgets: {{shop: {{daily_limit_usd: 5}}}}
"""
WITHOUT_SESSIONS = frozenset({"router_sessions", "router_create_session"})
ARGUMENTS: dict[str, dict[str, Any]] = {"router_explain": {"body": {"model": "m", "messages": []}}}


@pytest.fixture(scope="module")
def running() -> Iterator[AdminProcess]:
    """A router of two workers that both answer, with a token and without sessions."""
    with admin_process({"ROUTER_API_TOKEN": TOKEN, "ROUTER_ALLOW_PRIVATE_BACKENDS": "true"}, CONFIG) as started:
        wait_until(lambda: started.log.count('"config_loaded"') == 2, "both workers to serve", 60.0)
        yield started


async def test_every_tool_that_reads_answers_for_all_workers(running: AdminProcess) -> None:
    """In the form of its schema, which the client checks; health tells of both workers."""
    async with http_client(running.url) as client:
        await client.list_tools()
        for tool in TOOLS:
            if tool.effect is Effect.READS and tool.name not in WITHOUT_SESSIONS:
                await ask(client, tool.name, **ARGUMENTS.get(tool.name, {}))
        assert [worker["worker"] for worker in (await ask(client, "router_health"))["workers"]] == [0, 1]


async def test_a_change_reaches_every_worker_before_the_tool_answers(running: AdminProcess) -> None:
    """Whichever worker is asked next, it knows the rule, and the audit tells who added it."""
    async with http_client(running.url) as client:
        added = await ask(client, "router_add_rule", name="second", backends=["a"], match={"service": "web"})
        assert (added["changed"], added["after"]["name"]) == (True, "second")
        for _ in range(6):
            assert [rule["name"] for rule in (await ask(client, "router_rules"))["rules"]] == ["first", "second"]
        assert (await ask(client, "router_remove_rule", name="second"))["changed"] is True
        for _ in range(6):
            assert [rule["name"] for rule in (await ask(client, "router_rules"))["rules"]] == ["first"]
    (line,) = [line for line in running.log.splitlines() if '"add_rule"' in line]
    assert '"who":"token:' in line
