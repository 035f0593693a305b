"""Changes above the file on a real Envoy: another process writes them, as one worker does for the others."""

import asyncio
import os
import subprocess
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from router_ext.clock import SystemClock
from router_ext.config.changes import Changes, Spec
from router_ext.config.loader import LoadedConfig
from router_ext.control import Control, begin
from router_ext.demo.child import Child
from tests.envoy.rig import EnvoyProcess, wait_until
from tests.envoy.stack import CHAT, ROUTER_EXT, Stack, chat, http, stack
from tests.envoy.test_workers import NOWHERE, server_section
from tests.fakes.telemetry import RecordingTelemetry

ONE = """
backends:
  - {name: a, url: "http://127.0.0.1:{a}", type: vllm, model_name: m}
"""
TO_B = {"name": "to-b", "match": {"service": "s"}, "backends": ["b"]}
FAST = ["--model", "m", "--prefill-tps", "10000000", "--decode-tps", "100000"]
HEALTHY = "kronaxis_router_backend_healthy"
DRAINED = "kronaxis_router_backend_drained"


async def _nothing_runs_here(_loaded: LoadedConfig) -> None:
    pass


@pytest.fixture
def running() -> Iterator[Stack]:
    """Two simulated backends, of which the file knows one."""
    with stack(ONE, {"a": FAST, "b": FAST}) as started:
        yield started


async def change(running: Stack, edit: Callable[[Changes], Changes]) -> None:
    """A change by another process than the router's."""
    start = begin(running.config, os.environ, None, time.time())
    other = Control(
        running.config,
        os.environ,
        start,
        _nothing_runs_here,
        telemetry=RecordingTelemetry(),
        clock=SystemClock(),
    )
    await other.change(edit)


def spec_of_b(running: Stack) -> Spec:
    """The second backend, as a caller of the admin API gives it."""
    return {"url": f"http://127.0.0.1:{running.sim_ports['b']}", "type": "vllm", "model_name": "m"}


def knows(running: Stack, cluster: str) -> bool:
    """True when Envoy has this cluster."""
    return f"\n{cluster}::" in f"\n{running.envoy.admin('/clusters')}"


async def until(condition: Callable[[], bool], what: str, deadline_s: float = 10.0) -> None:
    """Waits for a condition off the event loop."""
    await asyncio.to_thread(wait_until, condition, what, deadline_s)


async def ran(command: str, running: Stack) -> subprocess.CompletedProcess[str]:
    """A command on the router's file, at its end."""
    argv = [*ROUTER_EXT, command, str(running.config)]
    return await asyncio.to_thread(subprocess.run, argv, check=False, capture_output=True, text=True, timeout=30)


async def add_b(running: Stack) -> None:
    """The backend b, to which a rule leads, by a change; waits until it is up."""
    await change(running, lambda changes: changes.with_backend("b", spec_of_b(running)).with_rule("to-b", TO_B))
    await until(lambda: knows(running, "backend-b"), "Envoy to know b", 2.0)
    await until(lambda: running.metric(HEALTHY, backend="b") == 1, "b to be up")


async def used(running: Stack, count: int, service: str = "s") -> Counter[tuple[int, str]]:
    """Sends requests one after the other: statuses and backends."""
    found: Counter[tuple[int, str]] = Counter()
    async with http() as session:
        for _ in range(count):
            body, headers = chat("m", max_tokens=1), {"x-kronaxis-service": service}
            async with session.post(running.url + CHAT, json=body, headers=headers) as answer:
                await answer.read()
                found[answer.status, answer.headers.get("x-kronaxis-backend", "none")] += 1
    return found


@asynccontextmanager
async def under_load(running: Stack) -> AsyncIterator[Counter[tuple[int, str]]]:
    """Requests of four clients all the while; the counter is whole at the end."""
    counted: Counter[tuple[int, str]] = Counter()
    stop = asyncio.Event()

    async def client() -> None:
        while not stop.is_set():
            counted.update(await used(running, 5, "load"))

    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(client())
        try:
            yield counted
        finally:
            stop.set()


async def test_a_backend_of_the_api_is_known_to_envoy_and_survives_reloads_and_restarts(running: Stack) -> None:
    """In Envoy within 2 s; then a reload of the file, restarts of the router and of Envoy."""
    await add_b(running)
    assert await used(running, 3) == {(200, "b"): 3}

    running.write_config(ONE + "rules: [{name: nobody, match: {service: x}, backends: [a]}]\n")
    await until(lambda: len(running.log_events("config_loaded")) == 2, "the reload")
    assert await used(running, 3) == {(200, "b"): 3}

    running.router.stop()
    running.start_router()
    await until(lambda: running.metric(HEALTHY, backend="b") == 1, "b to be up after the router's restart")
    running.await_routed()
    assert await used(running, 3) == {(200, "b"): 3}

    running.envoy.stop()
    for name in ("clusters.yaml", "bootstrap.yaml"):
        (running.folder / "envoy" / name).unlink()
    assert (await ran("envoy-config", running)).returncode == 0
    running.envoy = EnvoyProcess(running.folder / "envoy" / "bootstrap.yaml", running.envoy_admin, running.folder)
    running.envoy.start()
    assert knows(running, "backend-b")
    running.await_routed()
    await until(lambda: running.metric(HEALTHY, backend="b") == 1, "b to be up after Envoy's restart")
    assert await used(running, 3) == {(200, "b"): 3}


async def test_a_router_that_starts_tells_envoy_of_the_changes(running: Stack) -> None:
    """Changes that came while it did not run, in a cluster file made from the router's file alone."""
    running.router.stop()
    await change(running, lambda changes: changes.with_backend("b", spec_of_b(running)).with_rule("to-b", TO_B))
    assert not knows(running, "backend-b")
    running.start_router()
    await until(lambda: knows(running, "backend-b"), "Envoy to know b")
    await until(lambda: running.metric(HEALTHY, backend="b") == 1, "b to be up")
    running.await_routed()
    assert await used(running, 2) == {(200, "b"): 2}


async def test_discarded_changes_are_gone_from_envoy_too(running: Stack) -> None:
    """The start that sets them aside writes Envoy's clusters anew."""
    await add_b(running)
    running.router.stop()
    argv = [*ROUTER_EXT, "serve", str(running.config), "--discard-changes"]
    running.router = Child("router", argv, running.folder / "router.log")
    running.router.start()
    await until(lambda: not knows(running, "backend-b"), "Envoy to forget b")
    running.await_routed()
    assert await used(running, 2) == {(200, "a"): 2}
    assert (running.folder / "data" / "changes.json.discarded").exists()


async def test_draining_moves_the_traffic_without_a_failed_request(running: Stack) -> None:
    """Under load: new requests go elsewhere at once, a stream in flight ends whole, and an undrain brings it back."""
    await add_b(running)
    running.sim_faults("a", first_token_delay_s=2)
    async with http() as session:
        body = chat("m", max_tokens=8, stream=True, ignore_eos=True)
        async with session.post(running.url + CHAT, json=body) as answer:
            await until(lambda: running.in_flight_of("a") == 1, "the stream at a")
            running.sim_faults("a")
            async with under_load(running) as drained:
                await change(running, lambda changes: changes.with_drained("a"))
                await until(lambda: running.metric(DRAINED, backend="a") == 1, "a to be drained")
                after = await used(running, 20, "load")
            assert (await answer.read()).rstrip().endswith(b"data: [DONE]")
            assert answer.headers["x-kronaxis-backend"] == "a"
    assert after == {(200, "b"): 20}
    assert {status for status, _ in drained} == {200}
    assert running.metric(HEALTHY, backend="a") == 1

    async with under_load(running) as back:
        await change(running, lambda changes: changes.without_drained("a"))
        await until(lambda: running.metric(DRAINED, backend="a") == 0, "a to be back")
        assert await used(running, 20, "load") == {(200, "a"): 20}
    assert {status for status, _ in back} == {200}


async def test_a_backend_that_is_taken_away_again_leaves_no_trace(running: Stack) -> None:
    """Under load: Envoy forgets its cluster, and nothing is left on disk."""
    await add_b(running)
    async with under_load(running) as counted:
        await change(running, lambda changes: changes.with_drained("b"))
        await until(lambda: running.metric(DRAINED, backend="b") == 1, "b to be drained")
        await change(running, lambda changes: changes.without_rule("to-b").without_backend("b"))
        await until(lambda: not knows(running, "backend-b"), "Envoy to forget b")
    assert {status for status, _ in counted} == {200}
    assert not (running.folder / "data" / "changes.json").exists()
    assert await used(running, 2) == {(200, "a"): 2}


async def test_a_request_ends_at_a_backend_that_is_removed_meanwhile(running: Stack) -> None:
    """Envoy gives up the cluster, and not its open stream; the exchange is settled, and the place is free again."""
    await add_b(running)
    running.sim_faults("b", first_token_delay_s=2)
    async with http() as session:
        body, headers = chat("m", max_tokens=8, stream=True, ignore_eos=True), {"x-kronaxis-service": "s"}
        async with session.post(running.url + CHAT, json=body, headers=headers) as answer:
            await until(lambda: running.in_flight_of("b") == 1, "the stream at b")
            await change(running, lambda changes: changes.without_rule("to-b").without_backend("b"))
            await until(lambda: not knows(running, "backend-b"), "Envoy to forget b")
            assert (await answer.read()).rstrip().endswith(b"data: [DONE]")
            assert answer.headers["x-kronaxis-backend"] == "b"
    await until(lambda: running.sim_in_flight("b") == 0, "b to be idle")
    assert await used(running, 2) == {(200, "a"): 2}


async def test_changes_that_do_not_fit_are_refused_and_the_router_goes_on(running: Stack) -> None:
    """A broken file of changes: said in a metric and the log, mended by the next good one; a start is refused."""
    await add_b(running)
    kept = running.folder / "data" / "changes.json"
    good = kept.read_bytes()
    kept.write_text("{")
    await until(lambda: running.metric("kronaxis_router_config_changes_in_force") == 0, "the refusal")
    assert await used(running, 3) == {(200, "b"): 3}
    refused = await ran("serve", running)
    assert refused.returncode == 2
    assert f"{kept}: is broken" in refused.stderr
    assert "--discard-changes" in refused.stderr
    kept.write_bytes(good)
    await until(lambda: running.metric("kronaxis_router_config_changes_in_force") == 1, "the good changes")
    assert len(running.log_events("changes_refused")) == 1


async def test_every_worker_takes_a_change_over_that_one_process_wrote() -> None:
    """Nobody is told: each looks at what is on disk, and a backend that one of them does not know yet gets nothing."""
    with stack(ONE, {"a": FAST, "b": FAST}, server_extra=server_section(NOWHERE, 2)) as running:
        await change(running, lambda changes: changes.with_backend("b", spec_of_b(running)).with_rule("to-b", TO_B))
        await until(lambda: len(running.log_events("changes_taken_over")) == 2, "both workers", 20.0)
        await until(lambda: running.metric(HEALTHY, backend="b") == 1, "b to be up for both")
        assert await used(running, 20) == {(200, "b"): 20}
