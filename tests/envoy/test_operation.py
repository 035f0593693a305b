"""Operating the stack: configuration changes under load, TCP instead of a socket, and ten thousand requests."""

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.envoy.rig import free_port, wait_until
from tests.envoy.stack import CHAT, Stack, chat, http, stack

ONE = """
backends:
  - {name: a, url: "http://127.0.0.1:{a}", type: vllm, model_name: m}
defaults: {fallback_chain: [a]}
"""
TWO = """
backends:
  - {name: a, url: "http://127.0.0.1:{a}", type: vllm, model_name: m}
  - {name: b, url: "http://127.0.0.1:{b}", type: vllm, model_name: m}
rules:
  - {name: to-b, priority: 1, match: {service: s}, backends: [b]}
defaults: {fallback_chain: [a]}
"""
FAST = ["--model", "m", "--prefill-tps", "10000000", "--decode-tps", "100000"]


@pytest.fixture(scope="module")
def running() -> Iterator[Stack]:
    """Two simulated backends, of which the first configuration knows one."""
    with stack(ONE, {"a": FAST, "b": FAST}) as started:
        yield started


async def backends_used(running: Stack, count: int, **headers: str) -> set[str]:
    """Sends requests one after the other; the backends that answered. Fails on any status but 200."""
    used = set()
    async with http() as session:
        for _ in range(count):
            body = chat("m", max_tokens=1)
            async with session.post(running.url + CHAT, json=body, headers=headers) as answer:
                assert answer.status == 200, await answer.text()
                used.add(answer.headers.get("x-kronaxis-backend", "none"))
    return used


async def test_bad_files_change_nothing_and_a_good_one_takes_over_whole(running: Stack) -> None:
    """Under load: each bad file is refused, said in a metric and a log line; the good one brings a new backend."""
    stop = asyncio.Event()

    async def load() -> int:
        count = 0
        while not stop.is_set():
            await backends_used(running, 5)
            count += 5
        return count

    loading = asyncio.create_task(load())
    try:
        for bad in ("backends: [", "", "[]", ONE.replace("[a]", "[nowhere]"), "server: {port: 1}"):
            running.config.write_text(bad)
            await _until(lambda: running.metric("kronaxis_router_config_last_reload_success") == 0, "a refusal")
            running.write_config(ONE)
            await _until(lambda: running.metric("kronaxis_router_config_last_reload_success") == 1, "a good file")
        running.config.unlink()
        await _until(lambda: running.metric("kronaxis_router_config_last_reload_success") == 0, "a refusal")
        running.write_config(TWO)
        await _until(lambda: running.metric("kronaxis_router_backend_healthy", backend="b") == 1, "b to be up", 5.0)
        assert await backends_used(running, 3, **{"x-kronaxis-service": "s"}) == {"b"}
    finally:
        stop.set()
    assert await loading > 20
    assert running.log_events("config_refused")


async def test_a_setting_that_needs_a_restart_is_said_and_changes_nothing_else(running: Stack) -> None:
    """Another ``envoy_dir``: the running Envoy still reads the old one, and still learns of new backends there."""
    running.write_config(ONE)
    await _until(lambda: running.metric("kronaxis_router_backend_healthy", backend="b") == 0, "b to be gone")
    running.write_config(ONE)
    running.config.write_text(running.config.read_text().replace('/envoy"', '/another"'))
    await _until(lambda: bool(running.log_events("restart_needed")), "the hint")
    running.write_config(TWO)
    running.config.write_text(running.config.read_text().replace('/envoy"', '/another"'))
    await _until(lambda: running.metric("kronaxis_router_backend_healthy", backend="b") == 1, "b to be up")
    assert await backends_used(running, 2, **{"x-kronaxis-service": "s"}) == {"b"}
    assert running.log_events("restart_needed")[0]["settings"] == ["envoy_dir"]
    running.write_config(TWO)


async def test_a_backend_that_is_removed_finishes_its_requests(running: Stack) -> None:
    """A stream that runs on a backend when it leaves the configuration ends whole."""
    running.write_config(TWO)
    await _until(lambda: running.metric("kronaxis_router_backend_healthy", backend="b") == 1, "b to be up")
    running.sim_faults("b", first_token_delay_s=3)
    body = chat("m", max_tokens=8, stream=True, ignore_eos=True)
    async with (
        http() as session,
        session.post(running.url + CHAT, json=body, headers={"x-kronaxis-service": "s"}) as answer,
    ):
        running.write_config(ONE)
        await _until(lambda: running.metric("kronaxis_router_backend_healthy", backend="b") == 0, "b to be gone")
        content = await answer.read()
    assert content.rstrip().endswith(b"data: [DONE]")
    running.sim_faults("b")


async def test_ten_thousand_requests_leave_nothing_in_flight_and_no_memory_behind(running: Stack) -> None:
    """Plain and streamed, some cut by the client: the gauges end at 0 and the second half needs no more memory."""
    running.write_config(TWO)
    process = psutil.Process(running.router.pid)
    sizes: list[int] = []
    async with http() as session:

        async def worker(number: int) -> None:
            for turn in range(100):
                body = chat("m", max_tokens=3, stream=turn % 2 == 0, ignore_eos=True)
                async with session.post(running.url + CHAT, json=body) as answer:
                    assert answer.status == 200
                    if turn % 10 == number % 10:
                        answer.close()
                    else:
                        await answer.read()

        for _ in range(4):
            await asyncio.gather(*(worker(number) for number in range(25)))
            sizes.append(process.memory_info().rss)
    wait_until(lambda: running.in_flight() == 0, "no request in flight", 15.0)
    assert running.metric("kronaxis_router_requests_total") >= 10_000
    assert running.metric("kronaxis_router_faults_total") == 0
    assert sizes[3] - sizes[1] < 8 << 20


def test_tcp_between_envoy_and_the_processor_works_too() -> None:
    """The same stack with a TCP address."""
    with stack(ONE, {"a": FAST}, processor=f"127.0.0.1:{free_port()}") as running:
        assert asyncio.run(backends_used(running, 3)) == {"a"}


def test_no_file_and_no_log_holds_a_key(tmp_path: Path) -> None:
    """Upstream keys are in no Envoy file and in no log line."""
    keyed = ONE.replace("model_name: m}", "model_name: m, api_key: sk-very-secret}") + "\n"
    with stack(keyed + "rules: []\n", {"a": [*FAST, "--api-key", "sk-very-secret"]}) as running:
        assert asyncio.run(backends_used(running, 2)) == {"a"}
        running.envoy.stop()
        written = [path for path in running.folder.rglob("*") if path.is_file() and path != running.config]
        assert any(path.name == "bootstrap.yaml" for path in written)
        for path in written:
            assert not re.search(rb"sk-very-secret", path.read_bytes()), path


async def _until(condition: Callable[[], bool], what: str, deadline_s: float = 10.0) -> None:
    await asyncio.to_thread(wait_until, condition, what, deadline_s)
