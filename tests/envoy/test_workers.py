"""One router of several processes behind a real Envoy."""

import asyncio
import json
import os
import signal
import subprocess
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.envoy.rig import wait_until
from tests.envoy.stack import CHAT, ROUTER_EXT, Stack, chat, http, stack
from tests.envoy.test_sessions import CREATE, turn
from tests.fakes.valkey_server import valkey_server

BACKENDS = """
backends:
  - {name: a, url: "http://127.0.0.1:{a}", type: vllm, model_name: m}
  - {name: b, url: "http://127.0.0.1:{b}", type: vllm, model_name: m}
defaults: {fallback_chain: [a, b]}
"""
SERVER = """
  workers: {workers}
  shared_state: redis
  kv_pinning: {{enabled: true}}
  queue_aware_routing: true
  sessions: {{enabled: true, store: redis, redis_url: '{url}'}}
"""
FAST = ["--model", "m", "--prefill-tps", "10000000", "--decode-tps", "100000"]
SIMS: dict[str, Sequence[str]] = {"a": FAST, "b": FAST}
REQUESTS = "kronaxis_router_requests_total"
SETTLED = "kronaxis_router_request_duration_seconds_count"
BYPASSED = "kronaxis_router_bypassed_total"
LOST = "kronaxis_router_access_log_lost_total"


NOWHERE = "redis://127.0.0.1:1"
"""A server that is away: workers route without it."""


def server_section(url: str, workers: int) -> str:
    """What several workers need, beside the ports."""
    return SERVER.format(url=url, workers=workers)


@pytest.fixture(scope="module")
def started() -> Iterator[Stack]:
    """One router of three workers for all tests that leave it running."""
    with valkey_server() as server, stack(BACKENDS, SIMS, server_extra=server_section(server.url.reveal(), 3)) as one:
        yield one


@pytest.fixture
def running(started: Stack) -> Stack:
    """The router with all of its workers, and nothing in flight of what was sent while they started."""
    await_workers(started)
    wait_until(lambda: started.in_flight() == 0, "nothing in flight")
    return started


def asked(running: Stack, path: str, method: str = "GET") -> Any:
    """What the admin API answers."""
    request = urllib.request.Request(running.admin_url + path, method=method)
    with urllib.request.urlopen(request, timeout=5) as answer:
        return json.load(answer)


def workers(running: Stack) -> list[dict[str, Any]]:
    """The workers as the admin API shows them."""
    found: list[dict[str, Any]] = asked(running, "/health")["workers"]
    return found


def await_workers(running: Stack) -> None:
    """Waits until every worker routes, and Envoy knows it."""
    wait_until(lambda: all(worker["ready"] for worker in workers(running)), "all workers", 30.0)
    url = f"http://127.0.0.1:{running.envoy_admin}/stats?format=json&filter=^cluster.router-ext.membership_healthy$"
    wait_until(lambda: _value(url) == len(workers(running)), "Envoy to find all workers")


def _value(url: str) -> int:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return int(json.load(answer)["stats"][0]["value"])


async def ask(running: Stack, count: int, text: str = "hello", **more: Any) -> Counter[tuple[int, bool]]:
    """Sends requests at once; how many had which status, and whether the router saw them."""

    async def one(number: int) -> tuple[int, bool]:
        body = chat("m", f"{text} {number}", max_tokens=1, **more)
        async with session.post(running.url + CHAT, json=body) as answer:
            await answer.read()
            return answer.status, "x-kronaxis-backend" in answer.headers

    async with http() as session:
        return Counter(await asyncio.gather(*(one(number) for number in range(count))))


async def test_every_worker_routes_and_every_request_is_settled_by_the_one_that_decided(running: Stack) -> None:
    """Counters of all workers are one; none is left in flight, and none is taken for one that nobody routed."""
    before = {name: running.metric(name) for name in (REQUESTS, SETTLED, BYPASSED, LOST)}
    assert await ask(running, 300) == {(200, True): 300}
    assert running.metric(REQUESTS) == before[REQUESTS] + 300
    await asyncio.to_thread(wait_until, lambda: running.metric(SETTLED) == before[SETTLED] + 300, "all to be settled")
    assert running.in_flight() == 0
    assert (running.metric(BYPASSED), running.metric(LOST)) == (before[BYPASSED], before[LOST])
    shares = Counter(
        decision["id"].partition("-")[0] for decision in asked(running, "/api/decisions?limit=300")["decisions"]
    )
    assert set(shares) == {"w0", "w1", "w2"}
    assert min(shares.values()) >= 30


async def test_a_conversation_goes_on_whichever_worker_it_meets(running: Stack) -> None:
    """Each turn right after the last: kept once, on the backend whose cache holds it, listed once."""
    status, first, _ = await turn(running, "a conversation of several workers " * 60, CREATE)
    assert status == 200
    session_id = first["x-kronaxis-session-id"]
    deciders = set()
    for number in range(12):
        status, _, _ = await turn(running, f"turn {number}", {"x-kronaxis-session-id": session_id})
        assert status == 200
        deciders.add(asked(running, "/api/decisions?limit=1")["decisions"][0]["id"].partition("-")[0])
    assert len(deciders) > 1
    listed = [item for item in asked(running, "/api/sessions")["sessions"] if item["id"] == session_id]
    assert [item["turns"] for item in listed] == [13]
    assert asked(running, f"/api/sessions?id={session_id}", "DELETE") == {"deleted": True, "dry_run": False}
    assert (await turn(running, "gone", {"x-kronaxis-session-id": session_id}))[0] == 404


async def test_a_worker_that_is_killed_costs_no_request_and_is_replaced(running: Stack) -> None:
    """Under load: all answers are whole, what comes after its death is routed by the others, and what it counted
    stays counted.
    """
    victim = next(worker for worker in workers(running) if worker["worker"] == 1)
    counted = running.metric(REQUESTS)
    loading = asyncio.create_task(ask(running, 200, "before"))
    await asyncio.to_thread(wait_until, lambda: running.metric(REQUESTS) > counted, "the load to begin")
    os.kill(victim["pid"], signal.SIGKILL)
    assert {status for status, _ in await loading} == {200}
    assert await ask(running, 100, "after") == {(200, True): 100}
    assert running.metric(REQUESTS) >= counted + 100
    await asyncio.to_thread(await_workers, running)
    replaced = next(worker for worker in workers(running) if worker["worker"] == 1)
    assert replaced["restarts"] == victim["restarts"] + 1
    assert replaced["pid"] != victim["pid"]
    await asyncio.to_thread(wait_until, lambda: running.in_flight() == 0, "all to be settled")
    assert running.metric("kronaxis_router_worker_restarts_total") == replaced["restarts"]


def test_figures_of_all_processes_are_on_one_page(running: Stack) -> None:
    """CPU and memory of the supervisor and of each worker; one family can be asked for alone."""
    for name in ("supervisor", "worker-0", "worker-1", "worker-2"):
        assert running.metric("process_resident_memory_bytes", process=name) > 10_000_000
    with urllib.request.urlopen(
        running.admin_url + "/metrics?name[]=kronaxis_router_requests_total", timeout=5
    ) as page:
        families = {line.split()[2] for line in page.read().decode().splitlines() if line.startswith("# HELP")}
    assert families == {"kronaxis_router_requests_total"}


async def test_a_new_configuration_reaches_every_worker(running: Stack) -> None:
    """Each reads the file itself."""
    changed = running.config.read_text().replace("name: b,", "name: c,").replace("[a, b]", "[a, c]")
    new = running.config.with_suffix(".new")
    new.write_text(changed)
    new.replace(running.config)

    def all_know() -> bool:
        backends = asked(running, "/health")["backends"]
        return {item["name"] for item in backends if item["health"] == "healthy"} == {"a", "c"}

    await asyncio.to_thread(wait_until, all_know, "every worker to know the new backend")
    assert await ask(running, 50) == {(200, True): 50}


@pytest.fixture
def short_lived() -> Iterator[tuple[Stack, list[psutil.Process]]]:
    """A router that a test ends, and its worker processes. Its backend takes a second for twenty tokens."""
    slow: dict[str, Sequence[str]] = {"a": ["--model", "m", "--decode-tps", "20"], "b": FAST}
    extra = server_section(NOWHERE, 2)
    with stack(BACKENDS.replace("[a, b]", "[a]"), slow, server_extra=extra) as one:
        await_workers(one)
        found = psutil.Process(one.router.pid).children()
        assert len(found) == 2
        yield one, found


def await_gone(processes: Sequence[psutil.Process]) -> None:
    """Waits until none of the processes runs."""
    wait_until(lambda: not any(process.is_running() for process in processes), "the workers to be gone")


async def test_a_signal_lets_running_requests_end_and_leaves_no_process(
    short_lived: tuple[Stack, list[psutil.Process]],
) -> None:
    """Not ready at once; the exit code is 0."""
    running, processes = short_lived
    async with http() as session:
        body = chat("m", "count", max_tokens=20, stream=True)
        async with session.post(running.url + CHAT, json=body) as answer:
            await answer.content.readany()
            running.router.send(signal.SIGTERM)
            assert (await answer.read()).endswith(b"data: [DONE]\n\n")
    await asyncio.to_thread(wait_until, lambda: running.router.exit_code is not None, "the router to end")
    assert running.router.exit_code == 0
    await_gone(processes)


def test_no_worker_outlives_its_supervisor(short_lived: tuple[Stack, list[psutil.Process]]) -> None:
    """Not even one that was killed."""
    running, processes = short_lived
    running.router.kill()
    await_gone(processes)


@pytest.mark.parametrize(
    ("server", "code", "problem"),
    [
        ("", 2, "shared_state: redis"),
        ("  shared_state: redis\n  sessions: {redis_url: 'redis://h'}\n", 0, ""),
        ("  shared_state: redis\n  sessions: {enabled: true, redis_url: 'redis://h'}\n", 2, "store: redis"),
    ],
)
def test_workers_of_the_command_line_are_checked_as_those_of_the_file(
    tmp_path: Path, server: str, code: int, problem: str
) -> None:
    """What several workers lack is an error before anything starts."""
    file = tmp_path / "router.yaml"
    file.write_text(f"server:\n  port: 8050\n{server}" + BACKENDS.replace("{a}", "1").replace("{b}", "2"))
    command = [*ROUTER_EXT, "check-config", str(file), "--workers", "2"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, problem in ended.stderr) == (code, True)
