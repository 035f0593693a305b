"""GRPC-04: a client that pings quiet streams must not be sent away with too_many_pings."""

from collections.abc import Sequence
from typing import Any

import grpc
import pytest

from router_ext.config.sections import TcpAddress
from router_ext.engine.engine import Engine
from router_ext.extproc.server import ProcessorServer
from tests.fakes.clock import FakeClock
from tests.fakes.dispatcher import CannedDispatcher
from tests.fakes.telemetry import RecordingTelemetry
from tests.fakes.wire_stand import healthy_engine


async def test_pings_on_quiet_connections_are_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Envoy may ping every 10 s; the library's own limit without data is one ping in 300 s."""
    given: dict[str, int] = {}
    make_server = grpc.aio.server

    def keep_options(*, options: Sequence[tuple[str, Any]]) -> grpc.aio.Server:
        given.update(options)
        return make_server(options=options)

    monkeypatch.setattr(grpc.aio, "server", keep_options)
    telemetry = RecordingTelemetry()
    engine = healthy_engine(Engine, telemetry, FakeClock(), CannedDispatcher())
    server = ProcessorServer(engine, telemetry, TcpAddress("127.0.0.1", 0))
    await server.start()
    await server.stop(grace_s=0)
    assert given["grpc.http2.min_recv_ping_interval_without_data_ms"] <= 10_000
    assert given["grpc.keepalive_permit_without_calls"] == 1
