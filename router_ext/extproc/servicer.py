"""One ext_proc stream: read a message, ask the machine, do its effects."""

from collections import deque
from time import perf_counter

import grpc
from envoy.service.ext_proc.v3 import external_processor_pb2 as pb
from envoy.service.ext_proc.v3 import external_processor_pb2_grpc as pb_grpc

from router_ext.engine.engine import Engine, wants_body
from router_ext.extproc.codec import event_of, message_of
from router_ext.ports import Telemetry
from router_ext.stream.effects import Ask, Effect, Forward, Leave, ReportFirstToken
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
    """The loop of one stream, with the time that it spends outside of waiting."""

    def __init__(self, engine: Engine, telemetry: Telemetry, context: Context) -> None:
        self._engine = engine
        self._telemetry = telemetry
        self._context = context
        self._exchange = Exchange(wants_body, engine.config.server.max_body_bytes)
        self._decision_id = ""
        self._busy_s = 0.0

    async def run(self) -> None:
        try:
            await self._serve()
        except Exception as error:  # noqa: BLE001 - a bug of ours must not fail a request that a backend can answer
            self._telemetry.fault("ext_proc", error)
            await self._perform(self._exchange.bail())
        finally:
            self._telemetry.processed(self._busy_s)

    async def _serve(self) -> None:
        while (message := await self._context.read()) is not grpc.aio.EOF:
            started = perf_counter()
            effects = self._exchange.receive(event_of(message))
            self._busy_s += perf_counter() - started
            if await self._perform(effects):
                return

    async def _perform(self, effects: list[Effect]) -> bool:
        """Does the effects in order; True when the stream is to be left."""
        queue = deque(effects)
        while queue:
            effect = queue.popleft()
            match effect:
                case Ask():
                    queue.extend(await self._ask(effect))
                case Leave():
                    return True
                case ReportFirstToken():
                    self._engine.first_token(self._decision_id)
                case _:
                    started = perf_counter()
                    reply = message_of(effect)
                    self._busy_s += perf_counter() - started
                    await self._context.write(reply)
        return False

    async def _ask(self, ask: Ask) -> list[Effect]:
        started = perf_counter()
        plan = await self._engine.plan(ask.head, ask.body)
        self._busy_s += perf_counter() - started
        if isinstance(plan, Forward):
            self._decision_id = plan.metadata.get("id", "")
        return self._exchange.plan(plan)
