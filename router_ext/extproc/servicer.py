"""One ext_proc stream: read a message, ask the machine, do its effects."""

from collections import deque
from contextlib import aclosing
from time import perf_counter

import grpc
from envoy.service.ext_proc.v3 import external_processor_pb2 as pb
from envoy.service.ext_proc.v3 import external_processor_pb2_grpc as pb_grpc

from router_ext.engine.engine import Engine
from router_ext.engine.intake import wants_body
from router_ext.extproc.codec import event_of, message_of
from router_ext.ports import Telemetry
from router_ext.stream.effects import Ask, AskFollow, AskRelay, Effect, Forward, Leave, Reply, ReportFirstToken
from router_ext.stream.exchange import Exchange

Context = grpc.aio.ServicerContext[pb.ProcessingRequest, pb.ProcessingResponse]


class ExternalProcessor(pb_grpc.ExternalProcessorServicer):  # type: ignore[misc]
    """The ``envoy.service.ext_proc.v3.ExternalProcessor`` service."""

    def __init__(self, engine: Engine, telemetry: Telemetry) -> None:
        self._engine = engine
        self._telemetry = telemetry

    async def Process(self, _: object, context: Context) -> None:  # noqa: N802 - the name is Envoy's
        """Serves one HTTP exchange. A client that leaves cancels it; what was decided is settled by access log."""
        await _Stream(self._engine, self._telemetry, context).run()


class _Stream:
    """The loop of one stream, with the time for which it let Envoy wait."""

    def __init__(self, engine: Engine, telemetry: Telemetry, context: Context) -> None:
        self._engine = engine
        self._telemetry = telemetry
        self._context = context
        self._exchange = Exchange(wants_body, engine.config.server.max_body_bytes)
        self._decision_id = ""
        self._busy_s = 0.0

    async def run(self) -> None:
        try:
            while (message := await self._context.read()) is not grpc.aio.EOF:
                if await self._serve(message):
                    return
        finally:
            self._engine.left(self._decision_id)
            self._telemetry.processed(self._busy_s)

    async def _serve(self, message: pb.ProcessingRequest) -> bool:
        """Answers one message; True when the stream is to be left.

        A bug of ours must not fail a request that a backend can answer: without a plan the request goes on unchanged,
        and where a reply is missing Envoy goes on alone.
        """
        steps: deque[pb.ProcessingRequest | Effect] = deque((message,))
        while steps:
            step = steps.popleft()
            if isinstance(step, Leave):
                return True
            try:
                steps.extend(await self._do(step))
            except Exception as error:  # noqa: BLE001 - see above
                self._telemetry.fault("ext_proc", error)
                if not isinstance(step, Ask | AskRelay | AskFollow | ReportFirstToken):
                    await self._leave_after_fault()
                    return True
                steps.extend(self._exchange.bail())
        return False

    async def _leave_after_fault(self) -> None:
        """Ends the stream as an error where an answer is followed: Envoy fails closed, and nobody takes it for kept."""
        if self._exchange.following:
            await self._context.abort(grpc.StatusCode.INTERNAL, "fault")

    async def _do(
        self, step: pb.ProcessingRequest | Ask | AskRelay | AskFollow | ReportFirstToken | Reply
    ) -> list[Effect]:
        """Takes one step; returns those that follow from it."""
        if isinstance(step, AskRelay):
            return await self._relay(step)
        started = perf_counter()
        match step:
            case pb.ProcessingRequest():
                effects = self._exchange.receive(event_of(step))
            case Ask():
                effects = await self._ask(step)
            case AskFollow():
                effects = self._exchange.followed(await self._engine.follow(self._decision_id, step))
            case ReportFirstToken():
                self._engine.first_token(self._decision_id)
                effects = []
            case _:
                reply = message_of(step)
                self._busy_s += perf_counter() - started
                await self._context.write(reply)
                return []
        self._busy_s += perf_counter() - started
        return effects

    async def _relay(self, ask: AskRelay) -> list[Effect]:
        """Sends the answer that takes the upstream's place as it comes. The wait for it is the backends' time."""
        async with aclosing(self._engine.relay(self._decision_id, ask.seen)) as parts:
            async for part in parts:
                for reply in self._exchange.relayed(part):
                    if isinstance(reply, Leave):
                        return [reply]
                    await self._context.write(message_of(reply))
        return self._exchange.end_relay()

    async def _ask(self, ask: Ask) -> list[Effect]:
        plan = await self._engine.plan(ask.head, ask.body, can_relay=ask.can_relay, can_follow=ask.can_follow)
        if isinstance(plan, Forward):
            self._decision_id = plan.metadata.get("id", "")
        return self._exchange.plan(plan)
