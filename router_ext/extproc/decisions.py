"""The decision service on the processor's address: explains requests, and shows live ones to those who watch."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

import grpc

from router_ext.config.api_token import TOKEN_VARIABLE, holds
from router_ext.config.sections import Address, TcpAddress
from router_ext.config.url import is_loopback
from router_ext.decisions.events import message_of_explanation, message_of_happening
from router_ext.engine.engine import Engine
from router_ext.engine.explaining import request_head
from router_ext.engine.watching import MAX_WATCHERS, TooManyWatchersError
from router_ext.model.decision_filter import DecisionFilter
from router_ext.model.secret import Secret
from router_ext.v1 import decisions_pb2 as pb
from router_ext.v1 import decisions_pb2_grpc as pb_grpc

SERVICE: Final = pb.DESCRIPTOR.services_by_name["Decisions"].full_name

Context = grpc.aio.ServicerContext[object, object]


@dataclass(frozen=True, slots=True)
class DecisionAccess:
    """Who may ask. With a ``token`` every call needs it. Without one there is no login, so on an address that other
    machines reach (``exposed``) nobody is served.
    """

    token: Secret | None
    exposed: bool

    @classmethod
    def at(cls, address: Address, token: Secret | None) -> "DecisionAccess":
        """Access by way of a listening address."""
        return cls(token, isinstance(address, TcpAddress) and not is_loopback(address.host))

    def refusal(self, authorization: str) -> tuple[grpc.StatusCode, str] | None:
        """Why a call may not pass; None when it may. ``authorization`` is the metadata's value, "" without it."""
        if self.token is not None:
            if holds(authorization, self.token):
                return None
            message = f"This service needs the token of {TOKEN_VARIABLE}: authorization: Bearer TOKEN."
            return grpc.StatusCode.UNAUTHENTICATED, message
        if not self.exposed:
            return None
        message = f"Other machines can reach this port, and it has no login: set {TOKEN_VARIABLE} to use this service."
        return grpc.StatusCode.PERMISSION_DENIED, message


class DecisionService(pb_grpc.DecisionsServicer):
    """The ``router_ext.v1.Decisions`` service."""

    def __init__(self, engine: Engine, access: DecisionAccess) -> None:
        self._engine = engine
        self._access = access

    async def Explain(  # noqa: N802 - the name is the contract's
        self, request: pb.ExplainRequest, context: Context
    ) -> pb.ExplainResponse:
        """INVALID_ARGUMENT for what no HTTP request can be."""
        await self._admit(context)
        try:
            head = request_head(request.path, request.headers)
        except ValueError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        return message_of_explanation(await self._engine.explain(head, request.body))

    async def Watch(  # noqa: N802 - the name is the contract's
        self, request: pb.WatchRequest, context: Context
    ) -> AsyncIterator[pb.WatchEvent]:
        """Headers are sent once nothing more is missed. Ends with the server; RESOURCE_EXHAUSTED with too many."""
        await self._admit(context)
        wanted = DecisionFilter(request.service, request.rule, request.backend, request.request_id)
        try:
            with self._engine.watching.watch(wanted, decisions=request.decisions) as watcher:
                await context.send_initial_metadata(())
                while (event := await watcher.next()) is not None:
                    yield message_of_happening(*event)
        except TooManyWatchersError:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{MAX_WATCHERS} watch already.")

    async def _admit(self, context: Context) -> None:
        given = [value for name, value in context.invocation_metadata() or () if name == "authorization"]
        authorization = given[0] if len(given) == 1 and isinstance(given[0], str) else ""
        refused = self._access.refusal(authorization)
        if refused is not None:
            await context.abort(*refused)
