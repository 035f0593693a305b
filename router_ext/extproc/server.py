"""The gRPC server that Envoy talks to."""

from typing import Final

import grpc
from envoy.service.accesslog.v3 import als_pb2_grpc
from envoy.service.ext_proc.v3 import external_processor_pb2_grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from router_ext.config.sections import Address, UnixAddress
from router_ext.engine.engine import Engine
from router_ext.extproc.access_log import AccessLog
from router_ext.extproc.decisions import SERVICE, DecisionAccess, DecisionService
from router_ext.extproc.servicer import ExternalProcessor
from router_ext.model.secret import Secret
from router_ext.ports import Telemetry
from router_ext.v1 import decisions_pb2_grpc

_ROOM_FOR_FRAMING: Final = 1 << 20

_HTTP2_WINDOW: Final = 16 << 20
"""Envoy buffers an HTTP/2 request up to its stream window, also where the body limit is lower."""


class ProcessorServer:
    """External processing, access logs, decisions and health on one address. Not serving until ``set_serving(True)``.

    ``token`` opens the decision service; None lets everybody on this machine in.
    """

    def __init__(self, engine: Engine, telemetry: Telemetry, address: Address, *, token: Secret | None = None) -> None:
        self._watching = engine.watching
        self._address = address
        self._server = grpc.aio.server(options=_options(engine.config.server.max_body_bytes))
        self._health = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        external_processor_pb2_grpc.add_ExternalProcessorServicer_to_server(
            ExternalProcessor(engine, telemetry), self._server
        )
        als_pb2_grpc.add_AccessLogServiceServicer_to_server(AccessLog(engine, telemetry), self._server)
        decisions = DecisionService(engine, DecisionAccess.at(address, token))
        decisions_pb2_grpc.add_DecisionsServicer_to_server(decisions, self._server)  # type: ignore[no-untyped-call]
        reflection.enable_server_reflection((SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), self._server)

    async def start(self) -> int:
        """Binds and accepts. Returns the TCP port, 0 for a Unix socket. Raises RuntimeError when it cannot bind."""
        if isinstance(self._address, UnixAddress):
            self._address.path.parent.mkdir(parents=True, exist_ok=True)
            self._address.path.unlink(missing_ok=True)
        await self.set_serving(False)
        port = self._server.add_insecure_port(str(self._address))
        await self._server.start()
        return 0 if isinstance(self._address, UnixAddress) else port

    async def set_serving(self, serving: bool) -> None:
        """What Envoy's health checks are told; while not serving, Envoy goes on without the router."""
        status = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
        await self._health.set("", status)

    async def stop(self, grace_s: float) -> None:
        """Refuses new streams at once and lets running ones finish for ``grace_s`` seconds. Watchers see the end."""
        self._watching.close()
        await self._server.stop(grace_s)
        if isinstance(self._address, UnixAddress):
            self._address.path.unlink(missing_ok=True)


def _options(max_body_bytes: int) -> list[tuple[str, int]]:
    size = max(max_body_bytes, _HTTP2_WINDOW) + _ROOM_FOR_FRAMING
    return [
        ("grpc.max_receive_message_length", size),
        ("grpc.max_send_message_length", size),
        # Without these the server answers pings on quiet streams with GOAWAY too_many_pings.
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.so_reuseport", 0),
    ]
