"""The decision service over a real channel: explaining, watching, who may, and reflection."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from router_ext.config.sections import TcpAddress, UnixAddress
from router_ext.engine.engine import Engine
from router_ext.engine.watching import MAX_WATCHERS
from router_ext.extproc.decisions import DecisionAccess
from router_ext.extproc.server import ProcessorServer
from router_ext.model.outcome import Usage
from router_ext.model.secret import Secret
from router_ext.stream.effects import Forward
from router_ext.v1 import decisions_pb2 as pb
from router_ext.v1 import decisions_pb2_grpc as pb_grpc
from tests.fakes.clock import FakeClock
from tests.fakes.dispatcher import CannedDispatcher
from tests.fakes.domain import head, record
from tests.fakes.telemetry import RecordingTelemetry
from tests.fakes.wire_stand import CHANNEL_OPTIONS, DEADLINE_S, eventually, healthy_engine

TOKEN = "t0ken-of-the-test"
BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
BEARER = (("authorization", f"Bearer {TOKEN}"),)


Events = grpc.aio.UnaryStreamCall[pb.WatchRequest, pb.WatchEvent]


class Running:
    """A server with its engine and a client of the service."""

    def __init__(self, engine: Engine, server: ProcessorServer, channel: grpc.aio.Channel) -> None:
        self.engine = engine
        self.server = server
        self.channel = channel
        self.decisions = pb_grpc.DecisionsStub(channel)  # type: ignore[no-untyped-call]

    async def serve_one(self, **headers: str) -> str:
        """A request that is answered well. Returns its id."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        plan = await self.engine.plan(head(headers=named), BODY)
        assert isinstance(plan, Forward)
        self.engine.settle(record(plan.metadata["id"], usage=Usage(9, 2, 4)))
        return plan.metadata["id"]

    @asynccontextmanager
    async def watching(self, **wanted: object) -> AsyncIterator["Events"]:
        """A watcher from which nothing is hidden any more."""
        call = self.decisions.Watch(pb.WatchRequest(**wanted))  # type: ignore[arg-type]
        await call.initial_metadata()
        try:
            yield call
        finally:
            call.cancel()
            await eventually(lambda: not self.engine.watching.active)


@asynccontextmanager
async def running(token: str = "") -> AsyncIterator[Running]:
    """On a Unix socket."""
    telemetry = RecordingTelemetry()
    engine = healthy_engine(Engine, telemetry, FakeClock(), CannedDispatcher())
    with tempfile.TemporaryDirectory(prefix="rx-") as folder:
        address = UnixAddress(Path(folder) / "p.sock")
        server = ProcessorServer(engine, telemetry, address, token=Secret(token) if token else None)
        await server.start()
        try:
            async with grpc.aio.insecure_channel(str(address), options=CHANNEL_OPTIONS) as channel:
                yield Running(engine, server, channel)
        finally:
            await server.stop(grace_s=0)


async def test_a_request_is_explained_and_not_sent() -> None:
    """With decision, cluster and model; an empty path is that of chat completions."""
    async with running() as router:
        answer = await router.decisions.Explain(pb.ExplainRequest(body=BODY, headers={"X-Kronaxis-Service": "s"}))
        assert (answer.decision.backend, answer.decision.rule, answer.cluster) == ("alpha", "default", "backend-alpha")
        assert (answer.decision.upstream_model, answer.decision.request.service) == ("served-model", "s")
        assert [item.backend for item in answer.decision.candidates] == ["alpha", "gamma"]
        assert (answer.decision.id, answer.budget, answer.HasField("refusal")) == ("", "admitted", False)
        assert len(router.engine.recent) == 0


async def test_a_refusal_is_explained_as_the_client_would_get_it() -> None:
    """Status, code and sentence; a body over the limit is none that the server refuses by itself."""
    async with running() as router:
        answer = await router.decisions.Explain(pb.ExplainRequest(body=b"{"))
        assert (answer.refusal.status, answer.refusal.code) == (400, "invalid_json")
        large = await router.decisions.Explain(pb.ExplainRequest(body=b" " * (33_554_432 + 1)))
        assert (large.refusal.status, large.refusal.code) == (413, "body_too_large")


async def test_what_no_request_can_be_is_an_invalid_argument() -> None:
    """And leaves no trace."""
    async with running() as router:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await router.decisions.Explain(pb.ExplainRequest(path="/a b", body=BODY))
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_an_ended_request_is_seen_by_who_watches_for_it() -> None:
    """With figures; others are left out by the filter."""
    async with running() as router, router.watching(service="s") as events, asyncio.timeout(DEADLINE_S):
        await router.serve_one()
        decision_id = await router.serve_one(x_kronaxis_service="s", x_request_id="req-1")
        event = await events.read()
        assert isinstance(event, pb.WatchEvent)
        assert (event.decision.id, event.decision.request_id, event.dropped) == (decision_id, "req-1", 0)
        end = event.settlement
        assert (end.backend, end.rule, end.attempts, end.status, end.pin) == ("alpha", "default", 1, 200, "")
        assert (end.ttft_ms, end.duration_ms, list(end.also_asked)) == (1500.0, 2000.0, [])
        assert (end.usage.prompt_tokens, end.usage.cached_tokens, end.usage.completion_tokens) == (9, 4, 2)


async def test_a_refused_request_is_seen_and_so_is_a_decision_that_was_asked_for() -> None:
    """A decision has neither a settlement nor a refusal."""
    async with running() as router, router.watching(decisions=True) as events, asyncio.timeout(DEADLINE_S):
        await router.engine.plan(head(), b"{")
        await router.serve_one()
        seen = [event for event in [await events.read() for _ in range(3)] if isinstance(event, pb.WatchEvent)]
    kinds = [(event.HasField("refusal"), event.HasField("settlement")) for event in seen]
    assert kinds == [(True, False), (False, False), (False, True)]


async def test_one_watcher_too_many_is_refused() -> None:
    """Those before it go on watching."""
    async with running() as router, asyncio.timeout(DEADLINE_S):
        calls = [router.decisions.Watch(pb.WatchRequest()) for _ in range(MAX_WATCHERS)]
        for call in calls:
            await call.initial_metadata()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await router.decisions.Watch(pb.WatchRequest()).read()
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        decision_id = await router.serve_one()
        assert {(await call.read()).decision.id for call in calls} == {decision_id}
        for call in calls:
            call.cancel()


async def test_a_watcher_that_reads_nothing_delays_nobody() -> None:
    """Thousands of requests are settled while it sleeps."""
    async with running() as router, router.watching(), asyncio.timeout(DEADLINE_S):
        for _ in range(3000):
            await router.serve_one()
        assert len(router.engine.exchanges) == 0


async def test_the_end_of_the_server_ends_the_stream() -> None:
    """In order, and without waiting for the grace."""
    async with running() as router, router.watching() as events, asyncio.timeout(DEADLINE_S):
        await router.server.stop(grace_s=60)
        assert await events.read() is grpc.aio.EOF


@pytest.mark.parametrize(
    "metadata",
    [(), (("authorization", "Bearer no"),), (("authorization", TOKEN),), (*BEARER, *BEARER)],
    ids=["none", "wrong", "no-scheme", "twice"],
)
async def test_with_a_token_both_calls_need_it(metadata: tuple[tuple[str, str], ...]) -> None:
    """Health does not."""
    async with running(TOKEN) as router:
        for call in (
            router.decisions.Explain(pb.ExplainRequest(body=BODY), metadata=metadata),
            router.decisions.Watch(pb.WatchRequest(), metadata=metadata).read(),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call
            assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
            assert TOKEN not in (caught.value.details() or "")
        answer = await router.decisions.Explain(pb.ExplainRequest(body=BODY), metadata=BEARER)
        assert answer.decision.backend == "alpha"
        await health_pb2_grpc.HealthStub(router.channel).Check(health_pb2.HealthCheckRequest())


@pytest.mark.parametrize(
    ("host", "token", "code"),
    [
        ("127.0.0.1", None, None),
        ("::1", None, None),
        ("localhost", None, None),
        ("0.0.0.0", None, grpc.StatusCode.PERMISSION_DENIED),
        ("10.0.0.1", None, grpc.StatusCode.PERMISSION_DENIED),
        ("10.0.0.1", Secret(TOKEN), grpc.StatusCode.UNAUTHENTICATED),
    ],
)
def test_where_other_machines_reach_it_a_token_is_needed(
    host: str, token: Secret | None, code: grpc.StatusCode | None
) -> None:
    """Without one nobody is served there."""
    refused = DecisionAccess.at(TcpAddress(host, 1), token).refusal("")
    assert (None if refused is None else refused[0]) is code


async def test_a_client_without_the_contract_learns_it() -> None:
    """The services are listed, and the files of ours are told with what they import."""
    async with running(TOKEN) as router, asyncio.timeout(DEADLINE_S):
        stub = reflection_pb2_grpc.ServerReflectionStub(router.channel)
        asked = (
            reflection_pb2.ServerReflectionRequest(list_services=""),
            reflection_pb2.ServerReflectionRequest(file_containing_symbol="router_ext.v1.Decisions"),
        )
        listed, found = [answer async for answer in stub.ServerReflectionInfo(iter(asked))]
        assert [service.name for service in listed.list_services_response.service] == [
            "grpc.health.v1.Health",
            "grpc.reflection.v1alpha.ServerReflection",
            "router_ext.v1.Decisions",
        ]
        files = [FileDescriptorProto.FromString(raw) for raw in found.file_descriptor_response.file_descriptor_proto]
        methods = [method.name for file in files for service in file.service for method in service.method]
        assert methods == ["Explain", "Watch"]
