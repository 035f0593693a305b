"""The way to the decision service of a running router, at the addresses that its configuration gives it."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

import grpc

from router_ext.cli.base_url import reachable
from router_ext.cli.failure import CommandError
from router_ext.config.api_token import TOKEN_VARIABLE, token_from
from router_ext.config.sections import Address, Server, TcpAddress
from router_ext.config.workers import worker_address
from router_ext.v1 import decisions_pb2_grpc as pb_grpc

_OPTIONS: Final = (
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),
    # The router is on this machine or near it.
    ("grpc.enable_http_proxy", 0),
)

_HINTS: Final = {
    grpc.StatusCode.UNAVAILABLE: "the router is away",
    grpc.StatusCode.UNIMPLEMENTED: "the router is too old for this, or another program listens there",
}


class RouterRefusedError(CommandError):
    """A call that the router did not serve. ``away``: it cannot be reached now, and may be later."""

    def __init__(self, address: Address, error: grpc.aio.AioRpcError) -> None:
        self.away = error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
        message = f"{address}: {_HINTS.get(error.code()) or error.details() or error.code().name}"
        super().__init__(message, code="router_away" if self.away else "router_refused")


Metadata = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RunningRouter:
    """Where its processes answer, and what opens the service there."""

    addresses: Sequence[Address]
    metadata: Metadata

    @classmethod
    def of(cls, server: Server) -> "RunningRouter":
        """The router of a configuration, with the token of the environment. Raises ConfigError for a bad token."""
        token = token_from(os.environ)
        metadata = () if token is None else (("authorization", f"Bearer {token.reveal()}"),)
        return cls([worker_address(server, worker) for worker in range(server.workers)], metadata)


@asynccontextmanager
async def decisions_at(address: Address) -> AsyncIterator[pb_grpc.DecisionsStub]:
    """The service of one process. Raises RouterRefusedError for a call that fails inside."""
    target = address
    if isinstance(address, TcpAddress):
        target = TcpAddress(reachable(address.host), address.port)
    async with grpc.aio.insecure_channel(str(target), options=_OPTIONS) as channel:
        try:
            yield pb_grpc.DecisionsStub(channel)  # type: ignore[no-untyped-call]
        except grpc.aio.AioRpcError as error:
            raise RouterRefusedError(address, error) from None


def token_note() -> str:
    """What ``--help`` says of the token."""
    return f"A router that was started with {TOKEN_VARIABLE} needs the same variable here."
