"""One ext_proc stream at the level of messages: raw bytes over a gRPC channel, with a deadline on every wait."""

import asyncio
import contextlib
from typing import Any, Final

import grpc
from envoy_data_plane.envoy.service.ext_proc.v3 import ProcessingRequest
from grpc._cython import cygrpc  # type: ignore[attr-defined]

from tests.fakes.wire_messages import ProtocolViolation, Reply

METHOD: Final = "/envoy.service.ext_proc.v3.ExternalProcessor/Process"
DEADLINE_S: Final = 10.0


class ClientGone(Exception):  # noqa: N818 - an event, not an error
    """The HTTP client has left, and Envoy has cancelled the stream."""


def raw_bytes(data: bytes) -> bytes:
    """The serializer of a channel that carries finished messages."""
    return data


class ProcessStream:
    """A stream. ``send`` and ``receive`` may run side by side; ``cancel`` is what a client's leaving does to it."""

    def __init__(self, channel: grpc.aio.Channel, deadline_s: float = DEADLINE_S) -> None:
        self._deadline_s = deadline_s
        self._gone = False
        self.closed = False
        self.ended = False
        self._call = channel.stream_stream(METHOD, request_serializer=raw_bytes, response_deserializer=raw_bytes)()

    async def send(self, message: ProcessingRequest) -> bool:
        """Shows the processor a message; False when it has ended the stream."""
        if self.ended or self._call.done():
            return False
        try:
            async with asyncio.timeout(self._deadline_s):
                return await self._write(bytes(message))
        except TimeoutError:
            raise ProtocolViolation("the processor reads no more") from None
        except asyncio.CancelledError:
            self._raise_if_gone()
            raise

    async def _write(self, raw: bytes) -> bool:
        # ``call.write`` ends the whole call with INTERNAL when the peer has ended it meanwhile, and with it the replies
        # and the true status that are still unread. The call below it only reports that nothing was sent.
        call: Any = self._call
        try:
            await call.wait_for_connection()
            await call._cython_call.send_serialized_message(raw)
        except cygrpc.InternalError:
            return False
        return True

    async def receive(self) -> Reply | None:
        """The next reply; None when the processor has ended the stream, which it must do without an error."""
        if self.ended:
            return None
        try:
            async with asyncio.timeout(self._deadline_s):
                raw = await self._call.read()
        except TimeoutError:
            raise ProtocolViolation("no reply within the deadline") from None
        except grpc.aio.AioRpcError as error:
            raise ProtocolViolation(f"the stream failed: {error.code()} {error.details()}") from error
        except asyncio.CancelledError:
            self._raise_if_gone()
            raise
        if not isinstance(raw, bytes):
            await self._check_end()
            return None
        return Reply.parse(raw)

    async def _check_end(self) -> None:
        self.ended = True
        code = await self._call.code()
        if code is not grpc.StatusCode.OK:
            raise ProtocolViolation(f"the stream failed: {code}")

    def _raise_if_gone(self) -> None:
        # A call that was cancelled here raises CancelledError without anybody having cancelled the task.
        if self._gone:
            raise ClientGone from None

    async def half_close(self) -> None:
        """Envoy has nothing more to show."""
        if not (self.closed or self.ended or self._call.done()):
            self.closed = True
            # The peer may end the stream in the same moment; how it ended is read by ``receive``.
            with contextlib.suppress(cygrpc.InternalError):
                await self._call.done_writing()

    async def close(self) -> list[Reply]:
        """Closes this side; returns what the processor still says before it ends the stream, too."""
        await self.half_close()
        late: list[Reply] = []
        while (reply := await self.receive()) is not None:
            late.append(reply)
        return late

    def leave(self) -> None:
        """The client is gone."""
        self._gone = True
        self._call.cancel()

    def cancel(self) -> None:
        """Ends a stream that may have ended already."""
        self._call.cancel()
