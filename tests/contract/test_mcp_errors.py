"""What goes wrong is told by the tool, with what to do, and without a secret."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from mcp import MCPError

from router_ext.demo.child import free_port
from tests.contract.admin_process import TOKEN, AdminProcess, admin_process
from tests.contract.mcp_clients import TRANSPORTS, Transport, error_of, mcp_client, stdio_mcp

WRONG = "another-t0ken"
SECRET = "sk-of-a-user-Secret-2"


@pytest.fixture(scope="module")
def running() -> Iterator[AdminProcess]:
    """A router with a token that allows no private backends."""
    with admin_process({"ROUTER_API_TOKEN": TOKEN, "ROUTER_ALLOW_PRIVATE_BACKENDS": ""}) as started:
        yield started


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_what_the_router_refuses_is_told_with_its_places(transport: Transport, running: AdminProcess) -> None:
    """Of arguments that do not fit the schema, and of changes that do not fit the configuration."""
    async with mcp_client(transport, running) as client:
        assert await error_of(client, "router_add_rule", name="r") == (
            "The arguments do not fit; nothing was asked.\n- backends: Field required"
        )
        assert await error_of(client, "router_add_rule", name="r", backends=["nowhere"]) == (
            "The configuration would not be valid: see problems. Nothing has changed. (422 invalid_config)\n"
            "- admin API rules[r].backends[0]: unknown backend 'nowhere'; known: a, b"
        )
        assert await error_of(client, "router_remove_backend", name="nowhere") == (
            "There is no such backend. (404 backend_not_found)\nrouter_backends shows what there is."
        )
        assert "ab_tests[0].variant_b" in await error_of(client, "router_remove_backend", name="b")
        assert "- admin API backends[c].url: " in await error_of(
            client, "router_add_backend", name="c", url="http://127.0.0.1:9", type="vllm", model_name="m"
        )


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_arguments_mean_what_they_say_or_nothing(transport: Transport, running: AdminProcess) -> None:
    """A text is no boolean and an unknown argument no argument: "false" must never count as true."""
    async with mcp_client(transport, running) as client:
        for arguments in ({"dry_run": "false"}, {"dryRun": True}, {"drain": 0}):
            told = await error_of(client, "router_drain_backend", name="a", **arguments)
            assert told.startswith("The arguments do not fit; nothing was asked.")
        for name in (".", "..", "", "first\n"):
            assert "- name: " in await error_of(client, "router_remove_rule", name=name)
    assert not any(backend["drained"] for backend in running.ask("/api/backends")[1]["backends"])


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_error_quotes_no_secret(transport: Transport, running: AdminProcess) -> None:
    """Neither a credential nor a prompt that was given in the wrong form."""
    wrong = {"messages": [{"role": 7, "content": SECRET}], "credential": {"header": SECRET, "value": 3}}
    async with mcp_client(transport, running) as client:
        assert SECRET not in await error_of(client, "router_create_session", **wrong)
        assert SECRET not in await error_of(
            client, "router_create_session", messages=[{"content": SECRET}], service="\u00fc"
        )
        assert SECRET not in await error_of(
            client, "router_add_backend", name="c", url=f"http://u:{SECRET}@h", type="vllm", model_name="m"
        )
        assert SECRET not in await error_of(
            client, "router_add_backend", name="c", url="http://h", type="vllm", model_name="m", api_key=SECRET
        )
    log = running.folder / "mcp.log"
    assert SECRET not in running.log + (log.read_text() if log.exists() else "")


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_unknown_tool_is_an_error_of_the_protocol(transport: Transport, running: AdminProcess) -> None:
    """Not an answer: nothing was called."""
    async with mcp_client(transport, running) as client:
        with pytest.raises(MCPError, match="no such tool"):
            await client.call_tool("router_format_disk", {})


async def test_a_router_that_is_away_is_found_once_it_is_there(running: AdminProcess, tmp_path: Path) -> None:
    """The server starts without it, and says how it is started and where it was looked for."""
    port = free_port()
    async with stdio_mcp(f"http://127.0.0.1:{port}", tmp_path / "log") as client:
        told = await error_of(client, "router_health")
        assert told.startswith(f"No router answers at http://127.0.0.1:{port}.")
        assert "router-ext serve" in told
        assert "--admin" in told
        async with answering(port, '{"status":"ok","version":"1","uptime_seconds":1,"backends":[]}'):
            assert not (await client.call_tool("router_health", {})).is_error


@pytest.mark.parametrize("token", ["", WRONG], ids=["none", "wrong"])
async def test_a_missing_or_wrong_token_is_told_without_it(running: AdminProcess, tmp_path: Path, token: str) -> None:
    """With the variable to set."""
    async with stdio_mcp(running.url, tmp_path / "log", token=token) as client:
        told = await error_of(client, "router_backends")
        assert "(401 invalid_token)" in told
        assert "ROUTER_API_TOKEN" in told
    assert not any(secret in told + (tmp_path / "log").read_text() for secret in (WRONG, TOKEN))


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("<html>hello</html>", "is not a router's admin API"),
        ('{"backends": "many"}', "different versions"),
        ('{"error": {"message": "There is no such path.", "type": "t", "param": null, "code": "not_found"}}', "older"),
    ],
    ids=["other_server", "other_form", "older_router"],
)
async def test_what_is_no_router_of_this_version_is_told(tmp_path: Path, body: str, told: str) -> None:
    """A server that has nothing to do with it, and routers of other versions."""
    port = free_port()
    status = 404 if "error" in body else 200
    async with answering(port, body, status), stdio_mcp(f"http://127.0.0.1:{port}", tmp_path / "log") as client:
        assert told in await error_of(client, "router_health")


async def test_the_token_is_not_taken_elsewhere(tmp_path: Path) -> None:
    """A redirect is not followed."""
    seen: list[str] = []
    port, other = free_port(), free_port()
    async with (
        answering(other, "{}", seen=seen),
        answering(port, "{}", 307, location=f"http://127.0.0.1:{other}/health"),
        stdio_mcp(f"http://127.0.0.1:{port}", tmp_path / "log") as client,
    ):
        assert "not a router's admin API" in await error_of(client, "router_health")
    assert not seen


@pytest.mark.parametrize(
    "arguments",
    [("--admin", "ftp://h"), ("--admin", f"http://u:{SECRET}@h"), ("--admin", "h:1/x"), ("--log-level", "loud")],
    ids=["scheme", "credential", "no_scheme", "level"],
)
async def test_a_wrong_call_ends_with_2_and_one_line_about_it(arguments: tuple[str, str]) -> None:
    """On standard error, behind the usage or alone; standard output stays empty, and nothing quotes a credential."""
    code, out, err = await run_mcp(*arguments)
    assert (code, out) == (2, b"")
    assert [line for line in err.splitlines() if not line.startswith((b"usage: ", b" "))] == err.splitlines()[-1:]
    assert SECRET.encode() not in err


async def run_mcp(*arguments: str) -> tuple[int | None, bytes, bytes]:
    """Exit code, standard output and standard error of ``router-ext mcp`` without any input."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "router_ext.cli.main", "mcp", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 30)
    return process.returncode, out, err


@asynccontextmanager
async def answering(
    port: int, body: str, status: int = 200, seen: list[str] | None = None, **headers: str
) -> AsyncIterator[None]:
    """A server that answers anything with this; ``seen`` gets the paths."""

    async def answer(request: web.Request) -> web.Response:
        if seen is not None:
            seen.append(request.path)
        return web.Response(text=body, status=status, headers=headers, content_type="application/json")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        yield
    finally:
        await runner.cleanup()
