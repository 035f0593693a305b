"""The server itself: health, drain, limits on messages, addresses."""

import asyncio
import tempfile
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from router_ext.config.sections import TcpAddress, UnixAddress
from router_ext.engine.engine import Engine
from router_ext.extproc.server import ProcessorServer
from tests.fakes.clock import FakeClock
from tests.fakes.dispatcher import CannedDispatcher
from tests.fakes.telemetry import RecordingTelemetry
from tests.fakes.wire_http import HeaderList, Request, Response
from tests.fakes.wire_messages import (
    REQUEST,
    RESPONSE,
    ProcessingModes,
    ProtocolViolation,
    body_message,
    headers_message,
)
from tests.fakes.wire_stand import CHANNEL_OPTIONS, CONFIG, Stand, healthy_engine, served
from tests.fakes.wire_stream import ProcessStream
from tests.wire.modes import DUPLEX, PRODUCT

BODY = b'{"model":"m","stream":true}'
LIMIT = 33_554_432
"""The default of ``max_body_bytes``: 32 MiB."""


def engine() -> Engine:
    """An engine whose backends are healthy."""
    return healthy_engine(Engine, RecordingTelemetry(), FakeClock(), CannedDispatcher())


async def status(channel: grpc.aio.Channel) -> int:
    """What Envoy's health check is told."""
    stub = health_pb2_grpc.HealthStub(channel)
    answer = await stub.Check(health_pb2.HealthCheckRequest())
    return int(answer.status)


async def test_health_follows_serving() -> None:
    """NOT_SERVING until it is told otherwise, and again while it drains."""
    async with served(engine(), RecordingTelemetry()) as (server, channel):
        assert await status(channel) == health_pb2.HealthCheckResponse.NOT_SERVING
        await server.set_serving(True)
        assert await status(channel) == health_pb2.HealthCheckResponse.SERVING
        await server.set_serving(False)
        assert await status(channel) == health_pb2.HealthCheckResponse.NOT_SERVING


async def test_an_unserved_router_still_answers() -> None:
    """Health steers new requests away; a request that comes all the same is routed."""
    async with served(engine(), RecordingTelemetry()) as (_, channel):
        stream = await decided_stream(channel)
        assert await stream.close() == []


async def decided_stream(channel: grpc.aio.Channel) -> ProcessStream:
    """A stream whose request has been routed."""
    stream = ProcessStream(channel)
    await stream.send(headers_message(REQUEST, Request((BODY,)).header_list(), False, PRODUCT))
    assert await stream.receive() is not None
    await stream.send(body_message(REQUEST, BODY, True))
    reply = await stream.receive()
    assert reply is not None
    assert reply.kind == "request_body"
    return stream


async def test_a_drain_lets_running_streams_finish() -> None:
    """New streams are refused at once; the one that runs gets its reply, and then the server is gone."""
    async with served(engine(), RecordingTelemetry()) as (server, channel):
        running = await decided_stream(channel)
        stop = asyncio.create_task(server.stop(grace_s=30.0))
        await eventually_refused(channel)
        response = HeaderList(((":status", "200"), ("content-type", "application/json")))
        assert await running.send(headers_message(RESPONSE, response, False, None))
        reply = await running.receive()
        assert reply is not None
        assert reply.kind == "response_headers"
        assert await running.receive() is None
        async with asyncio.timeout(10):
            await stop


async def eventually_refused(channel: grpc.aio.Channel) -> None:
    """Returns when a new stream fails."""
    async with asyncio.timeout(10):
        while True:
            stream = ProcessStream(channel)
            try:
                await stream.close()
            except ProtocolViolation:
                return


async def test_a_drain_cuts_what_outlasts_its_grace() -> None:
    """With no grace left a stream ends, whatever it waits for."""
    async with served(engine(), RecordingTelemetry()) as (server, channel):
        running = await decided_stream(channel)
        async with asyncio.timeout(10):
            await server.stop(grace_s=0)
        with pytest.raises(ProtocolViolation):
            await running.receive()


async def test_a_stale_socket_is_replaced_and_removed_in_the_end() -> None:
    """A file left by a killed process is no obstacle, and a missing folder is made."""
    with tempfile.TemporaryDirectory(prefix="rx-") as folder:
        path = Path(folder) / "run" / "p.sock"
        path.parent.mkdir()
        path.write_text("stale")
        server = ProcessorServer(engine(), RecordingTelemetry(), UnixAddress(path))
        assert await server.start() == 0
        assert path.is_socket()
        await server.stop(grace_s=0)
        assert not path.exists()


async def test_a_tcp_server_tells_its_port() -> None:
    """Port 0 lets the system choose."""
    server = ProcessorServer(engine(), RecordingTelemetry(), TcpAddress("127.0.0.1", 0))
    port = await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=CHANNEL_OPTIONS) as channel:
        assert await status(channel) == health_pb2.HealthCheckResponse.NOT_SERVING
    await server.stop(grace_s=0)


async def test_an_address_in_use_is_an_error() -> None:
    """Two processes on one port would each get half of the streams."""
    first = ProcessorServer(engine(), RecordingTelemetry(), TcpAddress("127.0.0.1", 0))
    port = await first.start()
    second = ProcessorServer(engine(), RecordingTelemetry(), TcpAddress("127.0.0.1", port))
    with pytest.raises(RuntimeError):
        await second.start()
    await first.stop(grace_s=0)


@pytest.mark.parametrize("modes", [PRODUCT, ProcessingModes(DUPLEX, DUPLEX)], ids=str)
def test_a_body_of_the_promised_size_passes_in_one_message(stand: Stand, modes: ProcessingModes) -> None:
    """32 MiB by default, read and sent back with another model name."""
    body = b'{"model":"m","prompt":"'.ljust(LIMIT - 2, b"x") + b'"}'
    outcome = stand.run(stand.envoy(modes).exchange(Request((body,)), Response((b"{}",))))
    assert outcome.upstream is not None
    assert len(outcome.upstream.body) == LIMIT + len("served-model") - len("m")


def test_the_defaults_are_those_of_the_tests() -> None:
    """The limit that the sizes here were computed with."""
    assert CONFIG.server.max_body_bytes == LIMIT
