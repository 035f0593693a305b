"""A processor that follows a script, right or wrong: what the fake Envoy is tested with."""

import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import grpc
from envoy_data_plane.envoy.service.ext_proc.v3 import ProcessingRequest, ProcessingResponse

from tests.fakes.wire_messages import kind_of
from tests.fakes.wire_stand import CHANNEL_OPTIONS
from tests.fakes.wire_stream import raw_bytes

Replies = Sequence[ProcessingResponse] | None

Script = Callable[[str, ProcessingRequest], Replies]
"""The replies to a message of some kind; None ends the stream."""

Context = grpc.aio.ServicerContext[bytes, bytes]


class _Scripted(grpc.GenericRpcHandler):
    def __init__(self, script: Script) -> None:
        self._script = script

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[bytes, bytes]":
        return grpc.stream_stream_rpc_method_handler(self._process, raw_bytes, raw_bytes)

    async def _process(self, _: object, context: Context) -> None:
        while isinstance(raw := await context.read(), bytes):
            message = ProcessingRequest.parse(raw)
            replies = self._script(kind_of(message), message)
            if replies is None:
                return
            for reply in replies:
                await context.write(bytes(reply))


@contextlib.asynccontextmanager
async def scripted(script: Script) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to a processor that follows the script."""
    with tempfile.TemporaryDirectory(prefix="rx-") as folder:
        address = f"unix:{Path(folder) / 'p.sock'}"
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((_Scripted(script),))
        server.add_insecure_port(address)
        await server.start()
        try:
            async with grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS) as channel:
                yield channel
        finally:
            await server.stop(grace=0)
