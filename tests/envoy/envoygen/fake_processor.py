"""A processor that does as it is told, with health and access log services: run as a module, a process of its own."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from envoy.config.core.v3 import base_pb2
from envoy.service.accesslog.v3 import als_pb2, als_pb2_grpc
from envoy.service.ext_proc.v3 import external_processor_pb2 as wire
from envoy.service.ext_proc.v3 import external_processor_pb2_grpc
from grpc_health.v1 import health, health_pb2_grpc

MAX_MESSAGE_BYTES = 64 * 1024 * 1024


@dataclass(slots=True)
class Plan:
    """What the processor answers: routing headers and metadata, or a reply of its own instead of the backend's."""

    request_headers: dict[str, str] = field(default_factory=dict)
    response_headers: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    immediate: tuple[int, str, str] | None = None


@dataclass(slots=True)
class FakeProcessor:
    """Follows ``plan``, leaves each stream at the first piece of the answer, and keeps what it saw."""

    plan: Plan = field(default_factory=Plan)
    seen_headers: list[dict[str, str]] = field(default_factory=list)
    seen_bodies: list[int] = field(default_factory=list)
    response_statuses: list[str] = field(default_factory=list)
    log_names: list[str] = field(default_factory=list)
    log_entries: list[Any] = field(default_factory=list)

    async def Process(  # noqa: N802
        self, requests: AsyncIterator[Any], context: object
    ) -> AsyncIterator[Any]:
        """The ext_proc stream."""
        async for request in requests:
            reply = self._reply(request)
            if reply is None:
                return
            yield reply

    async def StreamAccessLogs(self, messages: AsyncIterator[Any], context: object) -> Any:  # noqa: N802
        """The access log stream: keeps every HTTP entry."""
        async for message in messages:
            if message.HasField("identifier"):
                self.log_names.append(message.identifier.log_name)
            self.log_entries.extend(message.http_logs.log_entry)
        return als_pb2.StreamAccessLogsResponse()

    def _reply(self, request: Any) -> Any | None:
        match request.WhichOneof("request"):
            case "request_headers":
                return self._on_request_headers(request.request_headers)
            case "request_body":
                self.seen_bodies.append(len(request.request_body.body))
                return self._routed("request_body")
            case "response_headers":
                self.response_statuses.append(_pairs(request.response_headers)[":status"])
                return wire.ProcessingResponse(
                    response_headers=wire.HeadersResponse(response=_setting(self.plan.response_headers))
                )
            case _:
                return None

    def _on_request_headers(self, message: Any) -> Any:
        self.seen_headers.append(_pairs(message))
        if self.plan.immediate is not None:
            return _immediate(*self.plan.immediate)
        if message.end_of_stream:
            return self._routed("request_headers")
        return wire.ProcessingResponse(request_headers=wire.HeadersResponse())

    def _routed(self, phase: str) -> Any:
        response = _setting(self.plan.request_headers)
        response.clear_route_cache = True
        kind = wire.HeadersResponse if phase == "request_headers" else wire.BodyResponse
        reply = wire.ProcessingResponse(**{phase: kind(response=response)})
        if self.plan.metadata:
            reply.dynamic_metadata.update({"router_ext": self.plan.metadata})
        return reply


def _pairs(message: Any) -> dict[str, str]:
    return {header.key: header.raw_value.decode() or header.value for header in message.headers.headers}


def _option(name: str, value: str) -> Any:
    return base_pb2.HeaderValueOption(
        header=base_pb2.HeaderValue(key=name, raw_value=value.encode()),
        append_action=base_pb2.HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD,
    )


def _setting(headers: dict[str, str]) -> Any:
    options = [_option(name, value) for name, value in headers.items()]
    return wire.CommonResponse(header_mutation=wire.HeaderMutation(set_headers=options))


def _immediate(status: int, content_type: str, body: str) -> Any:
    reply = wire.ProcessingResponse()
    reply.immediate_response.status.code = status
    reply.immediate_response.headers.set_headers.append(_option("content-type", content_type))
    reply.immediate_response.body = body.encode()
    return reply


@asynccontextmanager
async def serving(processor: FakeProcessor, address: str) -> AsyncIterator[grpc.aio.Server]:
    """A gRPC server for ``processor`` on ``address`` (``unix:PATH`` or ``host:port``), healthy from the start."""
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", MAX_MESSAGE_BYTES)])
    external_processor_pb2_grpc.add_ExternalProcessorServicer_to_server(processor, server)
    als_pb2_grpc.add_AccessLogServiceServicer_to_server(processor, server)
    health_pb2_grpc.add_HealthServicer_to_server(health.aio.HealthServicer(), server)
    server.add_insecure_port(address)
    await server.start()
    try:
        yield server
    finally:
        await server.stop(0)


async def _main(address: str, cluster: str) -> None:
    processor = FakeProcessor(Plan(request_headers={"x-kronaxis-cluster": cluster}))
    async with serving(processor, address) as server:
        await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], sys.argv[2]))
