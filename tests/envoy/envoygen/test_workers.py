"""Several workers behind one Envoy: whom it asks, what the death of one costs, and who gets which entry."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from router_ext.config.sections import Address, Server, TcpAddress, UnixAddress
from router_ext.config.workers import worker_address
from router_ext.envoygen import find_envoy, render_bootstrap, write_envoy_files
from tests.envoy.envoygen.fake_processor import FakeProcessor, Plan, serving
from tests.envoy.envoygen.stand import FakeBackend, Stand, config_for, eventually, server_for, stand

CHAT = "/v1/chat/completions"
TO_A = {"x-kronaxis-cluster": "backend-a"}
SESSION = {"x-kronaxis-session-id": "s"}
WRITTEN = "access_logs.grpc_access_log.logs_written"


def _address(s: Stand, worker: int) -> str:
    return str(worker_address(s.config.server, worker))


def _host_stat(s: Stand, worker: int, name: str) -> int:
    """A number that Envoy keeps of one worker, as an endpoint of the cluster of all."""
    address = re.escape(_address(s, worker).removeprefix("unix:"))
    found = re.search(rf"^router-ext::{address}::{name}::(\d+)$", s.envoy.admin("/clusters"), re.MULTILINE)
    return int(found[1]) if found else 0


async def _healthy(s: Stand, workers: int) -> None:
    """So many workers have passed a health check."""
    await eventually(lambda: s.envoy.stat("cluster.router-ext.membership_healthy") == workers, "healthy workers")


async def _until_all_are_asked(s: Stand) -> None:
    """Sends requests until each worker has had one: from then on Envoy takes all of them for healthy."""
    await _healthy(s, s.config.server.workers)
    while not all(_host_stat(s, worker, "rq_total") for worker in range(s.config.server.workers)):
        await s.post(CHAT)


@contextmanager
def _processes(s: Stand) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The workers as processes of their own, which route to ``backend-a``."""
    command = [sys.executable, "-m", "tests.envoy.envoygen.fake_processor"]
    workers = range(s.config.server.workers)
    processes = [subprocess.Popen([*command, _address(s, worker), "backend-a"]) for worker in workers]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait(timeout=5)


@dataclass(slots=True)
class Workers:
    """A stand with two workers in this process."""

    stand: Stand
    processors: Sequence[FakeProcessor]

    async def entries(self, requests: int) -> list[list[str]]:
        """The decision ids of the entries that each worker has, "" for none, when Envoy has sent all of its entries;
        so many requests were answered.
        """
        await eventually(lambda: self._received >= requests, "access log entries")
        assert self.stand.envoy.stat(WRITTEN) == requests
        return [[_id(entry) for entry in processor.log_entries] for processor in self.processors]

    @property
    def _received(self) -> int:
        return sum(len(processor.log_entries) for processor in self.processors)

    async def post(self, requests: int) -> None:
        """Sends requests, and waits for their answers."""
        answers = await asyncio.gather(*(self.stand.post(CHAT) for _ in range(requests)))
        assert [answer.status for answer in answers] == [200] * requests


@asynccontextmanager
async def _two_workers(logs: Path, *plans: Plan) -> AsyncIterator[Workers]:
    processors = [FakeProcessor(plan) for plan in plans]
    async with stand(logs, FakeBackend("a"), workers=2) as s, AsyncExitStack() as stack:
        for worker, processor in enumerate(processors):
            await stack.enter_async_context(serving(processor, _address(s, worker)))
        await _healthy(s, 2)
        yield Workers(s, processors)


def _id(entry: Any) -> str:
    spaces = entry.common_properties.metadata.filter_metadata
    return str(spaces["router_ext"].fields["id"].string_value) if "router_ext" in spaces else ""


async def test_no_request_after_the_death_of_a_worker_is_served_without_the_others(tmp_path: Path) -> None:
    """SIGKILL, and requests at once: none fails open, and none with a session is refused."""
    routed, spare = FakeBackend("a"), FakeBackend("spare")
    async with stand(tmp_path, routed, spare, chain=("spare",), workers=2) as s:
        with _processes(s) as (dying, _):
            await _until_all_are_asked(s)
            spare.seen.clear()
            dying.kill()
            dying.wait(timeout=5)
            for _ in range(50):
                answers = await asyncio.gather(s.post(CHAT), s.post(CHAT, **SESSION), s.post(CHAT), s.post(CHAT))
                assert [answer.status for answer in answers] == [200] * 4
    assert spare.seen == []


async def test_a_request_that_the_dead_worker_had_not_replied_to_goes_to_another(tmp_path: Path) -> None:
    """It is stopped, so that requests wait for it, and then killed."""
    routed, spare = FakeBackend("a"), FakeBackend("spare")
    async with stand(tmp_path, routed, spare, chain=("spare",), workers=2, message_timeout_s=30.0) as s:
        with _processes(s) as (dying, _):
            await _until_all_are_asked(s)
            spare.seen.clear()
            os.kill(dying.pid, signal.SIGSTOP)
            waiting = [asyncio.create_task(s.post(CHAT)) for _ in range(8)]
            await eventually(lambda: _host_stat(s, 0, "rq_active") > 0, "a request waits for the stopped worker")
            dying.kill()
            assert [answer.status for answer in await asyncio.gather(*waiting)] == [200] * 8
    assert spare.seen == []


async def test_an_entry_reaches_the_worker_that_decided_and_no_other(tmp_path: Path) -> None:
    """The id in the metadata tells whose it is."""
    plans = [Plan(TO_A, metadata={"id": "w0-x"}), Plan(TO_A, metadata={"id": "w1-x"})]
    async with _two_workers(tmp_path, *plans) as workers:
        await workers.post(40)
        entries = await workers.entries(40)
        asked = [len(processor.seen_headers) for processor in workers.processors]
    assert min(asked) > 0
    assert [Counter(ids) for ids in entries] == [Counter({"w0-x": asked[0]}), Counter({"w1-x": asked[1]})]


@pytest.mark.parametrize("metadata", [{}, {"rule": "r"}], ids=["no metadata", "metadata without an id"])
async def test_an_entry_without_a_decision_reaches_one_worker(metadata: dict[str, str], tmp_path: Path) -> None:
    """Somebody must count the requests that Envoy served alone, and only once."""
    async with _two_workers(tmp_path, *([Plan(TO_A, metadata=metadata)] * 2)) as workers:
        await workers.post(10)
        entries = await workers.entries(10)
    assert sorted(entries) == [[], [""] * 10]


async def test_entries_without_a_decision_go_to_another_worker_when_theirs_is_gone(tmp_path: Path) -> None:
    """None is lost and none comes twice."""
    async with stand(tmp_path, FakeBackend("a"), workers=2) as s, AsyncExitStack() as stack:
        workers = Workers(s, [FakeProcessor(Plan(TO_A)), FakeProcessor(Plan(TO_A))])
        going, staying = workers.processors
        async with serving(going, _address(s, 0)):
            await _healthy(s, 1)
            await workers.post(5)
            assert await workers.entries(5) == [[""] * 5, []]
            await stack.enter_async_context(serving(staying, _address(s, 1)))
            await _healthy(s, 2)
        await workers.post(5)
        assert await workers.entries(10) == [[""] * 5, [""] * 5]


async def test_a_worker_that_comes_back_gets_requests_and_its_entries_again(tmp_path: Path) -> None:
    """Its cluster has no health check that would have to pass first."""
    async with stand(tmp_path, FakeBackend("a"), workers=2) as s:
        first, second = (FakeProcessor(Plan(TO_A, metadata={"id": "w0-x"})) for _ in range(2))
        async with serving(FakeProcessor(Plan(TO_A, metadata={"id": "w1-x"})), _address(s, 1)):
            async with serving(first, _address(s, 0)):
                await _until_all_are_asked(s)
            await s.post(CHAT)
            async with serving(second, _address(s, 0)):
                while not second.seen_headers:
                    await s.post(CHAT)
                await eventually(lambda: bool(second.log_entries), "access log entry")
    assert {_id(entry) for entry in second.log_entries} == {"w0-x"}


def _bootstrap(server: Server) -> dict[str, Any]:
    return render_bootstrap(config_for(server))


def _clusters(server: Server) -> dict[str, dict[str, Any]]:
    return {cluster["name"]: cluster for cluster in _bootstrap(server)["static_resources"]["clusters"]}


def _endpoints(cluster: dict[str, Any]) -> list[dict[str, Any]]:
    localities = cluster["load_assignment"]["endpoints"]
    return [entry["endpoint"]["address"] for locality in localities for entry in locality["lb_endpoints"]]


def test_each_worker_is_an_endpoint_of_the_common_cluster_and_has_one_of_its_own(tmp_path: Path) -> None:
    """``router-ext`` for requests, ``router-ext-N`` for the entries of worker N."""
    server = replace(server_for(tmp_path), processor_address=UnixAddress(Path("/run/p.sock")), workers=2)
    first, second = {"pipe": {"path": "/run/p-0.sock"}}, {"pipe": {"path": "/run/p-1.sock"}}
    assert {name: _endpoints(cluster) for name, cluster in _clusters(server).items()} == {
        "router-ext": [first, second],
        "router-ext-0": [first],
        "router-ext-1": [second],
    }


def test_one_worker_is_an_endpoint_at_the_configured_address_and_nothing_more(tmp_path: Path) -> None:
    """No further cluster, no retries to another worker, one gRPC access log for all entries."""
    server = replace(server_for(tmp_path), processor_address=UnixAddress(Path("/run/p.sock")), workers=1)
    (cluster,) = _clusters(server).values()
    assert _endpoints(cluster) == [{"pipe": {"path": "/run/p.sock"}}]
    assert cluster.keys().isdisjoint({"lb_policy", "outlier_detection"})
    listener = _bootstrap(server)["static_resources"]["listeners"][0]
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    assert ["filter" in log for log in manager["access_log"]] == [False, False]
    assert "retry_policy" not in manager["http_filters"][1]["typed_config"]["grpc_service"]


@pytest.mark.parametrize(("workers", "percent"), [(2, 50), (3, 66), (64, 98)])
def test_one_worker_is_never_set_aside(workers: int, percent: int, tmp_path: Path) -> None:
    """Envoy sets another one aside while less than this share is: with all but one, the share is reached."""
    cluster = _clusters(replace(server_for(tmp_path), workers=workers))["router-ext"]
    assert cluster["outlier_detection"]["max_ejection_percent"] == percent
    assert 100 * (workers - 2) / workers < percent <= 100 * (workers - 1) / workers


@pytest.mark.parametrize(
    "address",
    [UnixAddress(Path("/run/p.sock")), TcpAddress("127.0.0.1", 9100), TcpAddress("localhost", 9100)],
    ids=["socket", "address", "name"],
)
@pytest.mark.parametrize("workers", [2, 64])
def test_envoy_validates_the_bootstrap_of_several_workers(address: Address, workers: int, tmp_path: Path) -> None:
    """``envoy --mode validate`` accepts it for every kind of address, up to the most workers."""
    server = replace(server_for(tmp_path), processor_address=address, workers=workers)
    write_envoy_files(config_for(server), tmp_path)
    command = [str(find_envoy()), "--mode", "validate", "-c", str(tmp_path / "bootstrap.yaml")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert result.returncode == 0, result.stderr
