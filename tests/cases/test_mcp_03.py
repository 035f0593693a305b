"""MCP-03: a restart of the server must not break its clients, and any replica must do."""

from collections.abc import Iterator

import pytest

from tests.contract.admin_process import TOKEN, AdminProcess, admin_process
from tests.contract.mcp_clients import Mode, ask, http_client
from tests.envoy.rig import wait_until

ENVIRON = {"ROUTER_API_TOKEN": TOKEN}


@pytest.fixture(scope="module")
def running() -> Iterator[AdminProcess]:
    """A router with a token."""
    with admin_process(ENVIRON) as started:
        yield started


def restart(running: AdminProcess) -> None:
    """As a rolling update does."""
    running.child.stop()
    running.child.start()
    wait_until(lambda: answers(running), "the router to answer", 30.0)


def answers(running: AdminProcess) -> bool:
    """Whether the router is there."""
    try:
        return running.ask("/health")[0] == 200
    except OSError:
        return False


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_goes_on_after_a_restart(running: AdminProcess, mode: Mode) -> None:
    """No session, nothing to lose: the same client calls again, and starts nothing anew."""
    async with http_client(running.url, mode=mode) as client:
        assert [rule["name"] for rule in (await ask(client, "router_rules"))["rules"]] == ["first"]
        before = running.child.pid
        restart(running)
        assert running.child.pid != before
        assert [rule["name"] for rule in (await ask(client, "router_rules"))["rules"]] == ["first"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_session_id_of_another_replica_does_not_matter(running: AdminProcess, mode: Mode) -> None:
    """A proxy or an older client may send one; it is never a reason for 404, which clients take for the end."""
    async with http_client(running.url, mode=mode, **{"mcp-session-id": "of-another-replica"}) as client:
        assert (await ask(client, "router_health"))["version"]
