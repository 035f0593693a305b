"""``router-ext doctor`` against a real Envoy and a real router: mistakes are planted one at a time."""

import asyncio
import json
import time
import urllib.request
from collections.abc import Iterator

import pytest

from router_ext.config.loader import load
from router_ext.doctor.diagnosis import diagnose
from router_ext.doctor.fetch import Pages, admin_session
from router_ext.doctor.reader import read_state
from tests.envoy.doctor_stand import (
    Change,
    Document,
    await_backends,
    envoy,
    examine,
    ext_proc,
    manager,
    routes,
)
from tests.envoy.rig import short_directory, wait_until
from tests.envoy.stack import CHAT, Stack, chat, http

BACKENDS = """
backends:
  - {name: a, url: "http://127.0.0.1:{a}", type: vllm, model_name: m}
  - {name: b, url: "http://127.0.0.1:{b}", type: vllm, model_name: m}
defaults: {fallback_chain: [a]}
"""
WORKERS = """
  workers: 2
  shared_state: redis
  sessions: {redis_url: 'redis://127.0.0.1:1'}
"""
FAST = ["--model", "m", "--prefill-tps", "10000000", "--decode-tps", "100000"]


@pytest.fixture(scope="module")
def running() -> Iterator[Stack]:
    """Two simulated backends and the router; each test starts an Envoy of its own."""
    yield from _without_envoy("")


@pytest.fixture
def workers() -> Iterator[Stack]:
    """The same with two worker processes; the Redis that they would share is away."""
    yield from _without_envoy(WORKERS)


def _without_envoy(server_extra: str) -> Iterator[Stack]:
    with short_directory() as folder:
        stack = Stack(folder)
        try:
            for name in ("a", "b"):
                stack.start_sim(name, *FAST)
            stack.write_config(BACKENDS, server_extra)
            with envoy(stack):
                stack.start_router()
            yield stack
        finally:
            stack.stop()


def no_filter(bootstrap: Document, _clusters: Document) -> None:
    """The ext_proc filter is gone."""
    del manager(bootstrap)["http_filters"][1]


def filter_off(bootstrap: Document, _clusters: Document) -> None:
    """The ext_proc filter is switched off."""
    manager(bootstrap)["http_filters"][1]["disabled"] = True


def reader_first(bootstrap: Document, _clusters: Document) -> None:
    """The usage reader stands before ext_proc."""
    filters = manager(bootstrap)["http_filters"]
    filters[1], filters[2] = filters[2], filters[1]


def compressor_behind(bootstrap: Document, _clusters: Document) -> None:
    """Answers are compressed before the router sees them."""
    library = {
        "name": "gzip",
        "typed_config": {"@type": "type.googleapis.com/envoy.extensions.compression.gzip.compressor.v3.Gzip"},
    }
    kind = "type.googleapis.com/envoy.extensions.filters.http.compressor.v3.Compressor"
    one = {"name": "gzip", "typed_config": {"@type": kind, "compressor_library": library}}
    manager(bootstrap)["http_filters"].insert(2, one)


def no_body(bootstrap: Document, _clusters: Document) -> None:
    """Request bodies are not sent."""
    ext_proc(bootstrap)["processing_mode"]["request_body_mode"] = "NONE"


def full_duplex(bootstrap: Document, _clusters: Document) -> None:
    """A mode in which a router that is away costs requests."""
    mode = ext_proc(bootstrap)["processing_mode"]
    mode |= {"request_body_mode": "FULL_DUPLEX_STREAMED", "request_trailer_mode": "SEND"}


def fail_closed(bootstrap: Document, _clusters: Document) -> None:
    """Without the router nothing is answered."""
    ext_proc(bootstrap)["failure_mode_allow"] = False


def default_timeout(bootstrap: Document, _clusters: Document) -> None:
    """Envoy's own 200 ms."""
    del ext_proc(bootstrap)["message_timeout"]


def stream_deadline(bootstrap: Document, _clusters: Document) -> None:
    """Streams to the router end after 15 s."""
    ext_proc(bootstrap)["grpc_service"]["timeout"] = "15s"


def no_namespace(bootstrap: Document, _clusters: Document) -> None:
    """What the router decided does not reach the access log."""
    del ext_proc(bootstrap)["metadata_options"]


def default_buffer(bootstrap: Document, _clusters: Document) -> None:
    """Envoy's own 1 MiB."""
    del bootstrap["static_resources"]["listeners"][0]["per_connection_buffer_limit_bytes"]


def no_cluster(_bootstrap: Document, clusters: Document) -> None:
    """Backend b has no cluster."""
    del clusters["resources"][1]


def wrong_cluster(_bootstrap: Document, clusters: Document) -> None:
    """Backend b's cluster leads to backend a."""
    first, second, *_ = clusters["resources"]
    second["load_assignment"]["endpoints"] = first["load_assignment"]["endpoints"]


def stray_cluster(_bootstrap: Document, clusters: Document) -> None:
    """A cluster of a backend that is gone."""
    old = {**clusters["resources"][1], "name": "backend-old"}
    clusters["resources"].append({**old, "load_assignment": {"cluster_name": "backend-old"}})


def default_breakers(bootstrap: Document, _clusters: Document) -> None:
    """1,024 streams to the router at once."""
    del bootstrap["static_resources"]["clusters"][0]["circuit_breakers"]


def small_breakers(_bootstrap: Document, clusters: Document) -> None:
    """Eight requests at once to a backend that may have 64."""
    clusters["resources"][0]["circuit_breakers"]["thresholds"][0]["max_requests"] = 8


def headers_kept(bootstrap: Document, _clusters: Document) -> None:
    """A client may set the routing header."""
    del manager(bootstrap)["early_header_mutation_extensions"]


def headers_passed_on(bootstrap: Document, _clusters: Document) -> None:
    """Backends see the router's own headers."""
    del routes(bootstrap)[1]["request_headers_to_remove"]


def no_access_log(bootstrap: Document, _clusters: Document) -> None:
    """Entries go to standard output only."""
    del manager(bootstrap)["access_log"][1]


def filtered_access_log(bootstrap: Document, _clusters: Document) -> None:
    """Only errors are told."""
    comparison = {"op": "GE", "value": {"default_value": 500, "runtime_key": "least"}}
    manager(bootstrap)["access_log"][1]["filter"] = {"status_code_filter": {"comparison": comparison}}


def wrong_health_service(bootstrap: Document, _clusters: Document) -> None:
    """The health check asks for a service that the router does not have."""
    check = bootstrap["static_resources"]["clusters"][0]["health_checks"][0]
    check["grpc_health_check"] = {"service_name": "envoy.service.ext_proc.v3.ExternalProcessor"}


def sessions_pass(bootstrap: Document, _clusters: Document) -> None:
    """Requests of sessions fail open."""
    table = routes(bootstrap)
    table[:] = [route for route in table if route["name"] != "session-needs-router"]


def all_first(bootstrap: Document, _clusters: Document) -> None:
    """The route for everything comes before the one of routed requests."""
    routes(bootstrap).insert(0, routes(bootstrap)[-1])


def default_route_timeout(bootstrap: Document, _clusters: Document) -> None:
    """Answers end after Envoy's own 15 s."""
    del routes(bootstrap)[1]["route"]["timeout"]


def open_egress(bootstrap: Document, _clusters: Document) -> None:
    """Other machines reach the egress listener."""
    bootstrap["static_resources"]["listeners"][1]["address"]["socket_address"]["address"] = "0.0.0.0"


MISTAKES: tuple[tuple[str, Change, str], ...] = (
    ("processor-filter", no_filter, "copy filter `envoy.filters.http.ext_proc`"),
    ("processor-filter", filter_off, "remove its `disabled: true`"),
    ("filter-order", reader_first, "move it in http_filters of listener ingress, directly behind ext_proc"),
    ("filter-order", compressor_behind, "remove or move filter gzip"),
    ("body-modes", no_body, "ext_proc, processing_mode: `request_body_mode: BUFFERED`"),
    ("body-modes", full_duplex, "ext_proc, processing_mode: `request_body_mode: BUFFERED`"),
    ("failure-mode", fail_closed, "ext_proc: `failure_mode_allow: true`"),
    ("message-timeouts", default_timeout, "ext_proc: `message_timeout: 1s`"),
    ("message-timeouts", stream_deadline, "ext_proc, grpc_service: `timeout: 0s`"),
    ("processor-rights", no_namespace, "ext_proc: copy `metadata_options`"),
    ("body-limits", default_buffer, "listener ingress: `per_connection_buffer_limit_bytes: 33619968`"),
    ("backend-clusters", no_cluster, "router-ext envoy-config FILE --out"),
    ("backend-clusters", wrong_cluster, "clusters.yaml, cluster backend-b: its endpoint is 127.0.0.1:"),
    ("breakers", default_breakers, "cluster router-ext, circuit_breakers, thresholds: `max_requests: 100000`"),
    ("breakers", small_breakers, "cluster backend-a, circuit_breakers, thresholds: `max_requests: 100000`"),
    ("routing-headers", headers_kept, "copy `early_header_mutation_extensions`"),
    ("routing-headers", headers_passed_on, "route routed: copy `request_headers_to_remove`"),
    ("access-log", no_access_log, "copy the `access_log` entry for cluster router-ext"),
    ("access-log", filtered_access_log, "access_log for cluster router-ext: remove `filter`"),
    ("processor-health", wrong_health_service, "copy `health_checks` of cluster router-ext"),
    ("session-routes", sessions_pass, "copy the routes `session-needs-router`"),
    ("routes", all_first, "move route fail-open to the end of listener ingress"),
    ("routes", default_route_timeout, "route routed: `timeout: 0s`"),
    ("loopback-only", open_egress, "set its address to 127.0.0.1"),
)


@pytest.mark.parametrize(
    ("check", "mistake", "mend"), MISTAKES, ids=[f"{check}-{mistake.__name__}" for check, mistake, _ in MISTAKES]
)
def test_a_planted_mistake_is_the_only_error_and_comes_with_its_mending_line(
    running: Stack, capsys: pytest.CaptureFixture[str], check: str, mistake: Change, mend: str
) -> None:
    """What an operator's hand did to the bootstrap or to the cluster file is named by the one check that is for it."""
    with envoy(running, mistake):
        report = examine(running, capsys)
    errors = [name for name, status in report.wrong.items() if status == "error"]
    assert errors == [check]
    assert mend in report.mending(check)
    assert report.code == 1


def test_the_rendered_files_are_right(running: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    """On an unchanged stack every check is looked at and none reports anything: exit code 0."""
    with envoy(running):
        await_backends(running)
        report = examine(running, capsys)
    assert {name: check["findings"] for name, check in report.checks.items() if check["status"] != "ok"} == {}
    assert report.code == 0


def test_what_the_admin_api_changed_is_no_mistake(running: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    """A drained backend leaves the cluster for failing open, as Envoy was told."""
    (running.folder / "envoy").mkdir(exist_ok=True)
    _ask_admin(running, "drain")
    try:
        with envoy(running):
            report = examine(running, capsys)
    finally:
        _ask_admin(running, "undrain")
    assert report.checks["backend-clusters"]["findings"] == []
    assert report.checks["backend-clusters"]["status"] == "ok"


def _ask_admin(stack: Stack, change: str) -> None:
    request = urllib.request.Request(f"{stack.admin_url}/api/backends/a/{change}", method="POST")
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert json.load(answer)["changed"]


async def test_traffic_is_no_mistake(running: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    """Plain and streamed answers, clients that leave early and requests that the router refuses: nothing fails open."""
    done = asyncio.Event()
    with envoy(running):
        await asyncio.to_thread(await_backends, running)
        sending = [asyncio.create_task(_traffic(running, number, done)) for number in range(8)]
        try:
            report = await asyncio.to_thread(examine, running, capsys, "--watch", "1")
        finally:
            done.set()
            counts = await asyncio.gather(*sending)
    assert report.wrong == {}
    assert min(counts) > 4


async def _traffic(running: Stack, number: int, done: asyncio.Event) -> int:
    """Requests of four kinds in turn until ``done``; how many there were."""
    count = 0
    bodies: tuple[Document, ...] = (
        chat("m", max_tokens=2),
        chat("m", max_tokens=50, stream=True, ignore_eos=True),
        chat("none"),
        {},
    )
    async with http() as session:
        while not done.is_set():
            turn = (number + count) % len(bodies)
            async with session.post(running.url + CHAT, json=bodies[turn]) as answer:
                if turn == 1:
                    answer.close()
                else:
                    await answer.read()
            count += 1
    return count


def test_the_rendered_files_of_several_workers_are_right(workers: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    """Two workers: an endpoint and an access logger for each, and nothing is reported."""
    with envoy(workers) as process:
        wait_until(lambda: process.stat("cluster.router-ext.membership_healthy") == 2, "both workers to be healthy")
        await_backends(workers)
        report = examine(workers, capsys)
    assert report.wrong == {}
    assert report.code == 0


def test_a_stray_cluster_is_a_warning(running: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing fails by it: the exit code stays 0."""
    with envoy(running, stray_cluster):
        await_backends(running)
        report = examine(running, capsys)
    assert report.wrong == {"stray-clusters": "warning"}
    assert "remove cluster backend-old" in report.mending("stray-clusters")
    assert report.code == 0


def test_requests_that_passed_the_router_by_are_remembered(running: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    """They were answered while Envoy's health check of the router failed, and are counted since Envoy's start."""
    with envoy(running, wrong_health_service):
        await_backends(running)
        body = json.dumps(chat("m", max_tokens=1)).encode()
        ask = urllib.request.Request(running.url + CHAT, body, {"content-type": "application/json"})
        with urllib.request.urlopen(ask, timeout=10) as answer:
            assert answer.status == 200
        report = examine(running, capsys)
    assert report.wrong["failed-open"] == "warning"
    assert "/reset_counters" in report.mending("failed-open")


def test_a_clock_that_is_off_is_found(running: Stack) -> None:
    """A machine whose clock is a minute ahead of Envoy's and of the router's."""

    async def examined() -> dict[str, list[str]]:
        async with admin_session() as session:
            config = load(running.config, {}).config
            late = [
                Pages(session, url, now=lambda: time.time() + 60.0)
                for url in (f"http://127.0.0.1:{running.envoy_admin}", running.admin_url)
            ]
            state = await read_state(config, late[0], late[1], 0.0)
        return {one.check.id: [finding.wrong for finding in one.findings or ()] for one in diagnose(state)}

    with envoy(running):
        await_backends(running)
        found = asyncio.run(examined())
    assert len(found.pop("clock-skew")) == 2
    assert not any(found.values())
