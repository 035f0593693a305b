"""``tail`` and ``explain --live`` against running servers: several processes, reconnects, refusals."""

import asyncio
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from router_ext.cli.explain import explain_live
from router_ext.cli.main import main
from router_ext.cli.running_router import RouterRefusedError, RunningRouter
from router_ext.cli.tail import Tail
from router_ext.config.sections import Server, TcpAddress, UnixAddress
from router_ext.engine.engine import Engine
from router_ext.extproc.server import ProcessorServer
from router_ext.model.secret import Secret
from router_ext.stream.effects import Forward
from router_ext.v1 import decisions_pb2 as pb
from tests.fakes.clock import FakeClock
from tests.fakes.dispatcher import CannedDispatcher
from tests.fakes.domain import head, record
from tests.fakes.telemetry import RecordingTelemetry
from tests.fakes.wire_stand import DEADLINE_S, eventually, healthy_engine

BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
TOKEN = "t0ken-of-the-test"

START_S = 28.0
"""How long a command may take on a machine that does much else."""


def engine() -> Engine:
    """An engine whose backends are healthy."""
    return healthy_engine(Engine, RecordingTelemetry(), FakeClock(), CannedDispatcher())


@asynccontextmanager
async def at(address: UnixAddress | TcpAddress, token: str = "") -> AsyncIterator[Engine]:
    """A process of a router that listens there."""
    made = engine()
    server = ProcessorServer(made, RecordingTelemetry(), address, token=Secret(token) if token else None)
    await server.start()
    try:
        yield made
    finally:
        await server.stop(grace_s=0)


async def serve_one(router: Engine) -> None:
    """A request that is answered well."""
    plan = await router.plan(head(), BODY)
    assert isinstance(plan, Forward)
    router.settle(record(plan.metadata["id"]))


@asynccontextmanager
async def tailing(tail: Tail) -> AsyncIterator["asyncio.Task[None]"]:
    """A tail for the block."""
    task = asyncio.create_task(tail.run())
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def sockets() -> Iterator[list[UnixAddress]]:
    """Addresses of three processes."""
    with tempfile.TemporaryDirectory(prefix="rx-") as folder:
        yield [UnixAddress(Path(folder) / f"p-{number}.sock") for number in range(3)]


async def test_every_process_of_a_router_is_watched(sockets: list[UnixAddress]) -> None:
    """One of three is away, and is waited for."""
    seen: list[pb.WatchEvent] = []
    async with AsyncExitStack() as stack:
        engines = [await stack.enter_async_context(at(address)) for address in sockets[:2]]
        async with tailing(Tail(RunningRouter(sockets, ()), pb.WatchRequest(), seen.append, retry_s=0.01)):
            await eventually(lambda: all(one.watching.active for one in engines))
            for one in engines:
                await serve_one(one)
            await eventually(lambda: len(seen) == 2)
            late = await stack.enter_async_context(at(sockets[2]))
            await eventually(lambda: late.watching.active)
            await serve_one(late)
            await eventually(lambda: len(seen) == 3)


async def test_a_router_that_comes_back_is_watched_again(sockets: list[UnixAddress]) -> None:
    """At the same address."""
    seen: list[pb.WatchEvent] = []
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(AsyncExitStack())
        one = await first.enter_async_context(at(sockets[0]))
        async with tailing(Tail(RunningRouter(sockets[:1], ()), pb.WatchRequest(), seen.append, retry_s=0.01)):
            await eventually(lambda: one.watching.active)
            await first.aclose()
            other = await stack.enter_async_context(at(sockets[0]))
            await eventually(lambda: other.watching.active)
            await serve_one(other)
            await eventually(lambda: len(seen) == 1)


async def test_a_router_that_was_never_there_is_an_error(sockets: list[UnixAddress]) -> None:
    """In one line with the address; for ``explain``, too."""
    router = RunningRouter(sockets, ())
    for call in (
        Tail(router, pb.WatchRequest(), print, retry_s=0.01).run(),
        explain_live(router, pb.ExplainRequest(body=BODY)),
    ):
        with pytest.raises(RouterRefusedError, match=r"^unix:.*\.sock: the router is away$") as caught:
            async with asyncio.timeout(DEADLINE_S):
                await call
        assert caught.value.away


async def test_a_token_that_is_missing_is_an_error_at_once(sockets: list[UnixAddress]) -> None:
    """Nobody waits for it to become right; with it the same call is served."""
    async with at(sockets[0], TOKEN), asyncio.timeout(DEADLINE_S):
        for call in (
            Tail(RunningRouter(sockets[:1], ()), pb.WatchRequest(), print).run(),
            explain_live(RunningRouter(sockets[:1], ()), pb.ExplainRequest(body=BODY)),
        ):
            with pytest.raises(RouterRefusedError, match="ROUTER_API_TOKEN") as caught:
                await call
            assert not caught.value.away
        router = RunningRouter(sockets[:1], (("authorization", f"Bearer {TOKEN}"),))
        answer = await explain_live(router, pb.ExplainRequest(body=BODY))
        assert answer.decision.backend == "alpha"


async def test_the_first_process_that_is_there_explains(sockets: list[UnixAddress]) -> None:
    """Of three, the last one."""
    async with at(sockets[2]), asyncio.timeout(DEADLINE_S):
        answer = await explain_live(RunningRouter(sockets, ()), pb.ExplainRequest(body=BODY))
    assert answer.cluster == "backend-alpha"


def test_the_addresses_are_those_of_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the token is the environment's."""
    monkeypatch.setenv("ROUTER_API_TOKEN", TOKEN)
    router = RunningRouter.of(Server(processor_address=TcpAddress("127.0.0.1", 9000), workers=2))
    assert [str(address) for address in router.addresses] == ["127.0.0.1:9000", "127.0.0.1:9001"]
    assert router.metadata == (("authorization", f"Bearer {TOKEN}"),)


@pytest.mark.parametrize("command", ["tail", "explain"])
def test_workers_that_only_the_call_of_serve_named_are_found(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the same ``--workers``: each has an address of its own, other than the one in the file."""
    config, body = tmp_path / "router.yaml", tmp_path / "body.json"
    body.write_bytes(BODY)
    config.write_text(
        "backends: [{name: a, url: 'http://127.0.0.1:1', type: vllm, model_name: m}]\n"
        f"server: {{processor_address: 'unix:{tmp_path}/p.sock', shared_state: redis, "
        "sessions: {redis_url: 'redis://127.0.0.1:1'}}\n"
    )
    arguments = {"tail": [], "explain": [str(body), "--live"]}[command]
    assert main([command, *arguments, "--config", str(config), "--workers", "2"]) == 1
    assert re.search(r"/p-[01]\.sock: the router is away\n$", capsys.readouterr().err)


@pytest.mark.parametrize(("end", "code"), [("signal", 0), ("pipe", 141)])
async def test_the_command_prints_a_line_an_event_and_ends_in_order(
    sockets: list[UnixAddress], end: str, code: int
) -> None:
    """By Ctrl-C, or when nobody reads on; nothing is on standard error."""
    folder = sockets[0].path.parent
    config = folder / "router.yaml"
    backends = "backends: [{name: a, url: 'http://127.0.0.1:1', type: vllm, model_name: m}]\n"
    config.write_text(f"{backends}server: {{processor_address: 'unix:{sockets[0].path}'}}\n")
    argv = (sys.executable, "-m", "router_ext.cli.main", "tail", "--json", "--config", str(config))
    environ = {name: value for name, value in os.environ.items() if name != "ROUTER_API_TOKEN"}
    reading, writing = os.pipe()
    async with at(sockets[0]) as router, asyncio.timeout(START_S):
        process = await asyncio.create_subprocess_exec(
            *argv, stdout=writing, stderr=asyncio.subprocess.PIPE, env=environ
        )
        os.close(writing)
        try:
            while not router.watching.active:  # noqa: ASYNC110 - nobody sets an event for it
                await asyncio.sleep(0.01)
            await serve_one(router)
            line = await asyncio.to_thread(os.read, reading, 1 << 20)
            assert json.loads(line)["settlement"]["status"] == 200
            if end == "signal":
                process.send_signal(signal.SIGINT)
            os.close(reading)
            if end == "pipe":
                await serve_one(router)
            _, errors = await process.communicate()
        except BaseException:
            process.kill()
            await process.wait()
            raise
    assert (process.returncode, errors) == (code, b"")
