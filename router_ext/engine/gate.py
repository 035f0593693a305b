"""The quality gate: whose answer is looked at, and whether it is good enough."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from msgspec import Struct

from router_ext.config.sections import OnExhausted, QualityGate, Streaming
from router_ext.engine.exchanges import KeptRequest, OpenExchange
from router_ext.engine.gate_ask import GateAsk, NotGated
from router_ext.gate.checks import fault_before_json
from router_ext.gate.judged import texts_to_judge
from router_ext.model.gate import BadSchema, Fault, Quality, ReadAnswer, SchemaVerdict
from router_ext.model.request import TEXT_PATHS
from router_ext.payload.inference import InferenceBody
from router_ext.payload.schema_request import requested_schema, requested_tools
from router_ext.ports import Clock, PairSink, Rescue, SchemaJudge, Telemetry
from router_ext.stream.effects import RelayBody, Relayed, RelayHead
from router_ext.stream.events import RequestHead

Reader = Callable[[bytes], ReadAnswer | None]

BAD_SCHEMA: Final = "bad_schema"
"""The reason for an answer that was not judged: the request's schema cannot be used."""

_FAULTS: Final = {
    SchemaVerdict.NOT_JSON: Fault.INVALID_JSON,
    SchemaVerdict.INVALID: Fault.SCHEMA,
    SchemaVerdict.TIMEOUT: Fault.SCHEMA_TIMEOUT,
}


class Judgement(Struct, frozen=True):
    """What the gate says of an answer: ``fault`` is None for a good one. ``judged`` is false when there was nothing to
    look at, or the schema cannot be used (``bad_schema``).
    """

    fault: Fault | None = None
    judged: bool = True
    bad_schema: bool = False

    @property
    def quality(self) -> Quality:
        """The word for an answer that is given as it is."""
        if not self.judged:
            return Quality.SKIPPED
        return Quality.PASSED if self.fault is None else Quality.FAILED


@dataclass(frozen=True, slots=True)
class GateChance:
    """``probability`` (0..1) is the share of such requests whose answer is looked at, in the way that ``ask`` says."""

    ask: GateAsk
    probability: float


NOT_JUDGED: Final = Judgement(judged=False)
"""The judgement of what is no answer to look at: an error of the client, or one that is larger than may be held."""

MAX_OBSERVED: Final = 100
"""Most answers that are judged after they have passed; of more nobody looks."""


class Gate:
    """Decides for requests, and judges answers. ``draw`` gives numbers in [0, 1)."""

    def __init__(
        self,
        judge: SchemaJudge,
        pairs: PairSink,
        telemetry: Telemetry,
        clock: Clock,
        draw: Callable[[], float],
    ) -> None:
        self._judge = judge
        self._pairs = pairs
        self._observed: set[asyncio.Task[None]] = set()
        self._telemetry = telemetry
        self._clock = clock
        self._draw = draw

    def look(self, config: QualityGate, exchange: OpenExchange, request: KeptRequest) -> None:
        """Notes in a new exchange how its answer is looked at. One that cannot be asked for again is not."""
        ask = self.ask(config, request.head, request.body, exchange.attempt.decision.backend)
        if isinstance(ask, GateAsk) and exchange.kept is not None:
            exchange.gate = ask
        elif ask is not None:
            exchange.quality = Quality.SKIPPED
            exchange.bad_schema = isinstance(ask, NotGated) and ask.bad_schema
            self._telemetry.gate_concluded(Quality.SKIPPED, BAD_SCHEMA if exchange.bad_schema else "")

    def chance(self, config: QualityGate, head: RequestHead, body: InferenceBody, backend: str) -> GateChance | None:
        """How it would look at the answer of such a request; None where it never would. Nothing is drawn."""
        ask = self.ask(config, head, body, backend, lambda: 0.0)
        if not isinstance(ask, GateAsk):
            return None
        return GateChance(ask, config.sample_rate if ask.schema is None else 1.0)

    def ask(
        self,
        config: QualityGate,
        head: RequestHead,
        body: InferenceBody,
        backend: str,
        draw: Callable[[], float] | None = None,
    ) -> GateAsk | NotGated | None:
        """How the answer of a request that goes to ``backend`` is checked; None where the gate has nothing to say.
        ``draw`` takes the place of the gate's own.
        """
        if not config.enabled or head.path not in TEXT_PATHS:
            return None
        schema = requested_schema(head.headers, body.envelope)
        if isinstance(schema, BadSchema) or (schema is not None and self._judge.refuses(schema)):
            return NotGated(bad_schema=True)
        if schema is None and (draw or self._draw)() >= config.sample_rate:
            return None
        streaming = config.streaming or (Streaming.SKIP if schema is None else Streaming.HOLD)
        skips = body.request.stream and streaming is Streaming.SKIP
        if skips or backend == config.fallback_backend:
            return None if schema is None else NotGated()
        return GateAsk(
            fallback=config.fallback_backend,
            checks=config.checks,
            schema=schema,
            tools=lambda: requested_tools(body.envelope),
            observes=body.request.stream and streaming is Streaming.OBSERVE,
            parallel=config.mode == "parallel",
            returns_bad=config.on_exhausted is OnExhausted.RETURN,
        )

    async def judge(self, ask: GateAsk, answer: ReadAnswer | None) -> Judgement:
        """Judges an answer; None is one that is no completion at all."""
        started = self._clock.monotonic()
        judgement = await self._judgement(ask, answer or ReadAnswer(()))
        self._telemetry.gate_judged(self._clock.monotonic() - started)
        return judgement

    async def _judgement(self, ask: GateAsk, answer: ReadAnswer) -> Judgement:
        fault = fault_before_json(answer, ask.checks, json_expected=ask.json_expected)
        if fault is not None:
            return Judgement(fault)
        if not ask.json_expected:
            return Judgement()
        texts = texts_to_judge(answer, ask.schema, ask.tools())
        for text in texts:
            verdict = await self._judge.judge(ask.schema, text)
            if ask.schema is not None:
                self._telemetry.schema_validated(verdict)
            if verdict is SchemaVerdict.BAD_SCHEMA:
                return Judgement(judged=False, bad_schema=True)
            if verdict is not SchemaVerdict.VALID:
                return Judgement(_FAULTS[verdict])
        return Judgement(judged=bool(texts))

    def concluded(self, quality: Quality, judgement: Judgement) -> None:
        """Counts what became of one request."""
        reason = BAD_SCHEMA if judgement.bad_schema else "" if judgement.fault is None else judgement.fault.value
        self._telemetry.gate_concluded(quality, reason)

    def rescued(self, rescue: Rescue) -> None:
        """The fallback's answer took the place of a bad one: a pair to learn from."""
        self._pairs.offer(rescue)

    async def observed(
        self, ask: GateAsk, parts: AsyncGenerator[Relayed], read: Reader, limit: int
    ) -> AsyncGenerator[Relayed]:
        """The parts as they come; what they were is judged afterwards. ``read`` understands the body. Of more than
        ``limit`` bytes nothing is kept, and nobody looks.
        """
        body, status, size = bytearray(), 0, 0
        async with aclosing(parts):
            async for part in parts:
                match part:
                    case RelayHead():
                        status = part.status
                    case RelayBody():
                        size += len(part.data)
                        if size <= limit:
                            body += part.data
                        else:
                            body.clear()
                        if part.end and 200 <= status < 300:
                            self._judge_later(ask, bytes(body) if size <= limit else None, read)
                yield part

    def _judge_later(self, ask: GateAsk, body: bytes | None, read: Reader) -> None:
        if body is None or len(self._observed) >= MAX_OBSERVED:
            self.concluded(Quality.SKIPPED, NOT_JUDGED)
            return
        # Read in the task too: the client has its last piece by then.
        task = asyncio.create_task(self._observe(ask, body, read), name="gate-observe")
        self._observed.add(task)
        task.add_done_callback(self._has_observed)

    def _has_observed(self, task: asyncio.Task[None]) -> None:
        self._observed.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._telemetry.fault("gate", error)

    async def _observe(self, ask: GateAsk, body: bytes, read: Reader) -> None:
        judgement = await self.judge(ask, read(body))
        self.concluded(judgement.quality, judgement)
