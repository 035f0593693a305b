"""The baseline: the least code that routes by a field of the body, behind the same Envoy.

It parses the body, sets the cluster header, waits for the first piece of the answer as a router that measures time to
first token must, and takes in the access log without looking at it.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import grpc
import orjson
from envoy.service.accesslog.v3 import als_pb2, als_pb2_grpc
from envoy.service.ext_proc.v3 import external_processor_pb2 as pb
from envoy.service.ext_proc.v3 import external_processor_pb2_grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

OPTIONS = [("grpc.max_receive_message_length", 64 << 20)]


class BareProcessor(external_processor_pb2_grpc.ExternalProcessorServicer):  # type: ignore[misc]
    """Routes each model name to the cluster of the same name."""

    async def Process(self, _: object, context: Any) -> None:  # noqa: N802 - the name is Envoy's
        """One exchange."""
        while (message := await context.read()) is not grpc.aio.EOF:
            kind = message.WhichOneof("request")
            reply = pb.ProcessingResponse()
            part = getattr(reply, kind)
            part.SetInParent()
            if kind == "request_body":
                model = orjson.loads(message.request_body.body)["model"]
                header = part.response.header_mutation.set_headers.add().header
                header.key, header.raw_value = "x-kronaxis-cluster", f"backend-{model}".encode()
                part.response.clear_route_cache = True
            await context.write(reply)
            if kind == "response_body":
                return


class AccessLogSink(als_pb2_grpc.AccessLogServiceServicer):  # type: ignore[misc]
    """Reads the access log and forgets it."""

    async def StreamAccessLogs(self, messages: AsyncIterator[Any], _: object) -> Any:  # noqa: N802
        """Until Envoy ends the stream."""
        async for _message in messages:
            pass
        return als_pb2.StreamAccessLogsResponse()


async def serve(address: str) -> None:
    """Serves until cancelled."""
    server = grpc.aio.server(options=OPTIONS)
    status = health.aio.HealthServicer()
    await status.set("", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(status, server)
    external_processor_pb2_grpc.add_ExternalProcessorServicer_to_server(BareProcessor(), server)
    als_pb2_grpc.add_AccessLogServiceServicer_to_server(AccessLogSink(), server)
    server.add_insecure_port(address)
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
