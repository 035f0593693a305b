"""The admin API changes a running stack."""

import asyncio
import json
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.envoy.rig import free_port, short_directory, wait_until
from tests.envoy.stack import CHAT, ROUTER_EXT, Stack, chat, http, stack
from tests.envoy.test_workers import NOWHERE, await_workers, server_section

ONE = """
backends:
  - {name: a, url: "http://127.0.0.1:{a}", type: vllm, model_name: m}
defaults: {fallback_chain: [a]}
"""
FAST = ["--model", "m", "--prefill-tps", "10000000", "--decode-tps", "100000"]
SIMS: dict[str, Sequence[str]] = {"a": FAST, "b": FAST}
REACHED_WITHIN_S = 2.0


@pytest.fixture(autouse=True)
def private_backends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulated backends are on this machine."""
    monkeypatch.setenv("ROUTER_ALLOW_PRIVATE_BACKENDS", "true")


@contextmanager
def one_process() -> Iterator[Stack]:
    """A router of one process whose file knows the backend ``a``."""
    with stack(ONE, SIMS) as running:
        yield running


def asked(running: Stack, method: str, path: str, body: object = None) -> Any:
    """What the admin API answers; fails on a refusal."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(running.admin_url + path, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{method} {path}: {error.code} {error.read().decode()}") from None


def spec_of_b(running: Stack) -> dict[str, Any]:
    """The other backend, which the file does not know."""
    return {"name": "b", "url": f"http://127.0.0.1:{running.sim_ports['b']}", "type": "vllm", "model_name": "m"}


TO_B = {"name": "to-b", "priority": 1, "match": {"service": "s"}, "backends": ["b"]}


async def used(running: Stack, count: int = 1, **headers: str) -> Counter[str]:
    """The backends that answered so many requests; fails on any status but 200."""
    answered: Counter[str] = Counter()
    async with http() as session:
        for _ in range(count):
            async with session.post(running.url + CHAT, json=chat("m", max_tokens=1), headers=headers) as answer:
                assert answer.status == 200, await answer.text()
                answered[answer.headers.get("x-kronaxis-backend", "none")] += 1
    return answered


SERVICE = {"x-kronaxis-service": "s"}


async def reached_b(running: Stack, deadline_s: float) -> float:
    """Seconds until the service's requests reach ``b``; fails after ``deadline_s``."""
    began = time.monotonic()
    while set(await used(running, 1, **SERVICE)) != {"b"}:
        assert time.monotonic() - began < deadline_s
        await asyncio.sleep(0.02)
    return time.monotonic() - began


async def test_traffic_reaches_a_backend_that_was_added_and_leaves_one_that_drains() -> None:
    """Within two seconds, without a failed request; undrained it gets requests again; removed it is gone."""
    with one_process() as running:
        await asyncio.to_thread(asked, running, "POST", "/api/backends", spec_of_b(running))
        await asyncio.to_thread(asked, running, "POST", "/api/rules", TO_B)
        await reached_b(running, REACHED_WITHIN_S)
        drained = await asyncio.to_thread(asked, running, "POST", "/api/backends/b/drain")
        assert (drained["changed"], drained["after"]["drained"]) == (True, True)
        assert await used(running, 20, **SERVICE) == {"a": 20}
        await asyncio.to_thread(asked, running, "POST", "/api/backends/b/undrain")
        assert await used(running, 5, **SERVICE) == {"b": 5}
        stats = await asyncio.to_thread(asked, running, "GET", "/api/stats")
        assert stats["backends"]["b"]["requests"] >= 6
        assert stats["rules"]["to-b"] >= 5
        await asyncio.to_thread(asked, running, "DELETE", "/api/rules/to-b")
        removed = await asyncio.to_thread(asked, running, "DELETE", "/api/backends/b")
        assert (removed["before"]["name"], removed["after"]) == ("b", None)
        assert await used(running, 5, **SERVICE) == {"a": 5}
        results = [(line["action"], line["result"]) for line in running.log_events("admin_change")]
        assert results == [
            ("add_backend", "changed"),
            ("add_rule", "changed"),
            ("drain_backend", "changed"),
            ("undrain_backend", "changed"),
            ("remove_rule", "changed"),
            ("remove_backend", "changed"),
        ]


async def test_a_change_reaches_every_worker_before_its_answer() -> None:
    """One worker makes it, the others have heard of it: no request after the answer is routed as before."""
    with stack(ONE, SIMS, server_extra=server_section(NOWHERE, 3)) as running:
        await asyncio.to_thread(await_workers, running)
        await asyncio.to_thread(asked, running, "POST", "/api/backends", spec_of_b(running))
        await asyncio.to_thread(asked, running, "POST", "/api/rules", TO_B)

        def all_healthy() -> bool:
            shown = asked(running, "GET", "/api/backends")["backends"]
            return {(item["name"], item["health"]) for item in shown} == {("a", "healthy"), ("b", "healthy")}

        await asyncio.to_thread(wait_until, all_healthy, "every worker to find b", REACHED_WITHIN_S)
        assert await used(running, 60, **SERVICE) == {"b": 60}
        await asyncio.to_thread(asked, running, "POST", "/api/backends/b/drain")
        assert await used(running, 60, **SERVICE) == {"a": 60}
        await asyncio.to_thread(asked, running, "POST", "/api/backends/b/undrain")
        await asyncio.to_thread(asked, running, "PUT", "/api/rules/to-b", {"backends": ["b"]})
        assert await used(running, 60) == {"b": 60}
        shown = await asyncio.to_thread(asked, running, "GET", "/api/config")
        assert (set(shown["changes"]["backends"]), set(shown["changes"]["rules"])) == ({"b"}, {"to-b"})
        stats = await asyncio.to_thread(asked, running, "GET", "/api/stats")
        assert stats["backends"]["b"]["requests"] >= 120
        assert len((await asyncio.to_thread(asked, running, "GET", "/api/queue"))["queues"]) == 2
        lines = running.log_events("admin_change")
        assert {(line["who"], line["peer"]) for line in lines} == {("loopback", "127.0.0.1")}
        assert len(lines) == 5
        await asyncio.to_thread(asked, running, "POST", "/api/config/reload")
        assert len(running.log_events("admin_change")) == 6
        for path in ("/api/config/changes", "/api/config/file"):
            status, _ = await asyncio.to_thread(status_of, running, "POST", path)
            assert status == 404


def status_of(running: Stack, method: str, path: str) -> tuple[int, bytes]:
    """Status and body of an answer, whatever it is."""
    request = urllib.request.Request(running.admin_url + path, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


@pytest.mark.parametrize("workers", [1, 2])
def test_on_an_address_that_others_reach_nothing_starts_without_a_token(workers: int) -> None:
    """Exit code 2, and one line that says what to do."""
    with short_directory() as folder:
        server = f"server: {{admin_host: 0.0.0.0, admin_port: {free_port()}, shared_state: redis, workers: {workers}, "
        server += f"processor_address: 'unix:{folder}/p.sock', sessions: {{redis_url: '{NOWHERE}'}}}}"
        file = Path(folder) / "router.yaml"
        file.write_text(server + ONE.replace("{a}", "1"))
        ended = subprocess.run(
            [*ROUTER_EXT, "serve", str(file)], capture_output=True, text=True, timeout=30, check=False
        )
        assert ended.returncode == 2
        assert ended.stderr.strip() == (
            "env ROUTER_API_TOKEN: must be set: server.admin_host is an address that other machines reach "
            "(or use 127.0.0.1)"
        )
