"""The scripted tour of operating the router: by its API, by an assistant's tools, and by the shell."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from router_ext.demo.visitor import CHAT, Step, Visitor, WrongAnswerError, chat, expect
from router_ext.model.headers import BACKEND, SERVICE

TOOLS: Final = 19

_PREMIUM: Final = "match: {service: premium}, backends: [strong]"

_ROUTER_EXT: Final = ("-m", "router_ext.cli.main")


def _spare(visitor: Visitor) -> dict[str, Any]:
    """A backend that the configuration does not have: the strong engine under another name and host."""
    port = visitor.stack.ports.engines[2]
    names = {"type": "vllm", "model_name": "smollm2", "aliases": ["small"]}
    return {"name": "spare", "url": f"http://localhost:{port}", "max_concurrent": 4, **names}


async def _change(visitor: Visitor, method: str, path: str, body: Any = None, status: int = 200) -> dict[str, Any]:
    answer = await visitor.operate(method, path, body)
    expect(answer.status == status, (method, path, answer.status, answer.body[:300]))
    changed: dict[str, Any] = answer.json()
    return changed


async def api_explains(visitor: Visitor) -> str:
    """What would become of a request, with every candidate, while nothing is sent."""
    before = await visitor.metric("kronaxis_router_requests_total")
    asked = {"path": CHAT, "headers": {SERVICE: "premium"}, "body": chat()}
    decision = (await _change(visitor, "POST", "/api/explain", asked))["decision"]
    expect((decision["backend"], decision["rule"]) == ("strong", "premium"), decision)
    expect(await visitor.metric("kronaxis_router_requests_total") == before, "a request was counted")
    return f"service premium would go to {decision['backend']} by rule {decision['rule']}; nothing was sent"


async def api_adds_backend_and_rule(visitor: Visitor) -> str:
    """A backend that the API adds gets its first request, through Envoy, within a few seconds."""
    rule = {"name": "to-spare", "priority": 200, "match": {"service": "tour"}, "backends": ["spare"]}
    dry = await _change(visitor, "POST", "/api/backends?dry_run=true", _spare(visitor), 201)
    expect(dry["dry_run"] and dry["before"] is None and dry["after"]["origin"] == "api", dry)
    known = (await visitor.operate("GET", "/api/backends")).json()["backends"]
    expect(all(backend["name"] != "spare" for backend in known), known)
    started = time.monotonic()
    await _change(visitor, "POST", "/api/backends", _spare(visitor), 201)
    await _change(visitor, "POST", "/api/rules", rule, 201)

    async def served() -> bool:
        return (await visitor.ask(CHAT, chat(), **{SERVICE: "tour"})).headers.get(BACKEND) == "spare"

    await visitor.stack.until("the added backend", served, patience_s=5.0)
    return f"spare answered after {time.monotonic() - started:.1f} s"


async def api_drains(visitor: Visitor) -> str:
    """A drained backend gets nothing until it is undrained."""
    await _change(visitor, "POST", "/api/backends/engine-a/drain")
    used = {(await visitor.ask(CHAT, chat())).headers.get(BACKEND) for _ in range(4)}
    await _change(visitor, "POST", "/api/backends/engine-a/undrain")
    after = (await visitor.ask(CHAT, chat())).headers.get(BACKEND)
    expect("engine-a" not in used and after == "engine-a", (used, after))
    return f"engine-a drained: {', '.join(sorted(map(str, used)))} answered; undrained: engine-a did"


async def api_sets_budget(visitor: Visitor) -> str:
    """A budget of the API is in force, and goes again."""
    answer = await _change(visitor, "PUT", "/api/budgets/tour", {"daily_limit_usd": 2.5})
    budgets = (await visitor.operate("GET", "/api/budgets")).json()["budgets"]
    expect(any(budget["service"] == "tour" and budget["limit_usd"] == 2.5 for budget in budgets), budgets)
    await _change(visitor, "DELETE", "/api/budgets/tour")
    return f"tour may spend ${answer['after']['daily_limit_usd']} a day; then no more limit"


async def api_refuses_bad_file(visitor: Visitor) -> str:
    """A file that does not load changes nothing, and the API shows what runs."""
    config = visitor.stack.config
    before, running = config.read_text(), (await visitor.operate("GET", "/api/config")).json()
    config.write_text(before + "\nrules_of_nobody: 1\n")
    refused = await visitor.operate("POST", "/api/config/reload")
    shown = (await visitor.operate("GET", "/api/config")).json()
    config.write_text(before)
    again = await visitor.operate("POST", "/api/config/reload")
    expect(refused.status == 422 and shown["digest"] == running["digest"], (refused.status, shown["digest"]))
    expect(shown["last_error"] is not None and again.status == 200, (shown["last_error"], again.status))
    return f"422 for {refused.json()['error']['problems'][0]['path']}, an unknown key; the old file runs on"


async def mcp_over_http(visitor: Visitor) -> str:
    """An assistant sees the tools at /mcp and asks."""
    async with Client(f"{visitor.stack.admin}/mcp") as client:
        return await _ask_tools(client)


async def mcp_over_stdio(visitor: Visitor) -> str:
    """The same beside the assistant, over standard input and output."""
    argv = [*_ROUTER_EXT, "mcp", "--admin", visitor.stack.admin]
    with (visitor.stack.config.parent / "logs" / "mcp.log").open("a") as log:
        async with Client(stdio_client(StdioServerParameters(command=sys.executable, args=argv), log)) as client:
            return await _ask_tools(client)


async def _ask_tools(client: Client) -> str:
    tools = {tool.name for tool in (await client.list_tools()).tools}
    expect(len(tools) == TOOLS, sorted(tools))
    health = await _tool(client, "router_health")
    asked = {"path": CHAT, "headers": {SERVICE: "premium"}, "body": chat()}
    explained = await _tool(client, "router_explain", **asked)
    dry = await _tool(client, "router_drain_backend", name="strong", dry_run=True)
    rules = await _tool(client, "router_rules")
    expect(health["status"] == "ok" and explained["decision"]["backend"] == "strong", (health, explained))
    expect(dry["after"]["drained"] is True and any(rule["name"] == "to-spare" for rule in rules["rules"]), dry)
    wrong = await client.call_tool("router_remove_backend", {"name": "nobody"})
    expect(wrong.is_error, wrong)
    return f"{len(tools)} tools; health {health['status']}, premium to strong; dry runs and errors as they should be"


async def _tool(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    expect(not result.is_error, (tool, result.content))
    return result.structured_content


async def shell_explains(visitor: Visitor) -> str:
    """``explain`` says the same of the configuration, and of the running router."""
    body = visitor.stack.config.parent / "body.json"
    body.write_text(json.dumps(chat()))
    header = ("--header", f"{SERVICE}: tour", "--config", str(visitor.stack.config), "--json")
    live = json.loads(await _command(visitor, "explain", str(body), "--live", *header))
    offline = json.loads(await _command(visitor, "explain", str(body), *header))
    expect(live["decision"]["backend"] == "spare", live)
    expect(offline["decision"]["backend"] != "spare", offline)
    return f"live {live['decision']['backend']}; by the file alone {offline['decision']['backend']}"


async def shell_tails_and_replays(visitor: Visitor) -> str:
    """``tail`` shows a request as it ends; ``replay`` says where it would go under another configuration."""
    config, record = visitor.stack.config, visitor.stack.config.parent / "record.jsonl"
    async with _running("tail", "--json", "--service", "premium", "--config", str(config)) as tail:
        line = await _first_line(visitor, tail)
    record.write_bytes(line)
    event = json.loads(line)
    other = config.parent / "other.yaml"
    other.write_text(
        config.read_text().replace(
            "match: {service: premium}, backends: [strong]", "match: {service: premium}, backends: [engine-a]"
        )
    )
    report = json.loads(await _command(visitor, "replay", str(record), "--config", str(other), "--json"))
    expect(event["settlement"]["status"] == 200 and report["moved"] == 1, (event, report))
    return f"strong took {event['settlement']['durationMs']:.0f} ms; under another rule engine-a would get it"


async def _first_line(visitor: Visitor, tail: asyncio.subprocess.Process) -> bytes:
    """Asks until the first request is seen: the watcher needs a moment to connect."""
    if tail.stdout is None:
        raise WrongAnswerError("tail has no output")
    line = asyncio.create_task(tail.stdout.readline())

    async def seen() -> bool:
        await visitor.ask(CHAT, chat(), **{SERVICE: "premium"})
        return line.done()

    await visitor.stack.until("a line of tail", seen, patience_s=20.0)
    return await line


async def shell_shows_and_checks(visitor: Visitor) -> str:
    """``top`` draws the backends, ``doctor`` finds nothing wrong, ``check-config`` likes the file."""
    config, admin = str(visitor.stack.config), visitor.stack.admin
    envoy = f"http://127.0.0.1:{visitor.stack.ports.envoy_admin}"
    top = json.loads(await _command(visitor, "top", "--once", "--json", "--admin", admin))
    doctor = json.loads(await _command(visitor, "doctor", config, "--admin", admin, "--envoy", envoy, "--json"))
    checked = json.loads(await _command(visitor, "check-config", config, "--json"))
    names = {line["backend"] for line in top["router"]["backends"]}
    expect(names == {"engine-a", "engine-b", "strong", "spare"}, top)
    expect(doctor["errors"] == 0 and checked["valid"], (doctor["errors"], checked))
    return f"top: {len(names)} backends; doctor: {len(doctor['checks'])} checks, 0 errors; check-config: valid"


async def mcp_takes_back(visitor: Visitor) -> str:
    """What was added goes again: a backend that a rule needs only after the rule."""
    async with Client(f"{visitor.stack.admin}/mcp") as client:
        refused = await client.call_tool("router_remove_backend", {"name": "spare"})
        await _tool(client, "router_remove_rule", name="to-spare")
        await _tool(client, "router_remove_backend", name="spare")
        changes = (await _tool(client, "router_config"))["changes"]
    expect(refused.is_error and not any(changes.values()), (refused, changes))
    answer = await visitor.ask(CHAT, chat(), **{SERVICE: "tour"})
    expect(answer.status == 200 and answer.headers[BACKEND] != "spare", answer.headers)
    return "refused while the rule needed it, then both removed; no change stands above the file"


async def _command(visitor: Visitor, *argv: str) -> bytes:
    """The standard output of ``router-ext``. Raises WrongAnswerError for an exit code other than 0."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *_ROUTER_EXT, *argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    output, errors = await process.communicate()
    expect(process.returncode == 0, (argv, process.returncode, output[-500:], errors[-500:]))
    return output


@asynccontextmanager
async def _running(*argv: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """``router-ext`` for the block."""
    process = await asyncio.create_subprocess_exec(sys.executable, *_ROUTER_EXT, *argv, stdout=asyncio.subprocess.PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


STEPS: Final[tuple[Step, ...]] = (
    api_explains,
    api_adds_backend_and_rule,
    api_drains,
    api_sets_budget,
    api_refuses_bad_file,
    mcp_over_http,
    mcp_over_stdio,
    shell_explains,
    shell_tails_and_replays,
    shell_shows_and_checks,
    mcp_takes_back,
)
